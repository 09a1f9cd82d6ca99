// A chart of numeric series: uPlot, loaded when a page needs it.
import uPlot from "uplot";

export type Series = { name: string; values: (number | null)[] };
export type ChartData = {
  x: number[];
  /** Seconds since 1970 when the horizontal axis is time. */
  time: boolean;
  /** Names in place of numbers on the horizontal axis. */
  names?: string[];
  series: Series[];
};

const STROKES = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];

/** Draws a chart into an element; gives a function that removes it. */
export function drawChart(parent: HTMLElement, data: ChartData): () => void {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const named = data.names && { values: (_plot: uPlot, at: number[]) => at.map((place) => (Number.isInteger(place) ? (data.names?.[place] ?? "") : "")) };
  const few = data.x.length <= 60;
  const plot = new uPlot({
    width: parent.clientWidth,
    height: Math.max(180, parent.clientHeight - 40),
    scales: { x: { time: data.time } },
    axes: [{ ...axis, ...named }, { ...axis, size: 70 }],
    series: [
      { label: data.time ? "time" : "row", ...(data.names && { value: (_plot: uPlot, at: number) => data.names?.[at] ?? "" }) },
      ...data.series.map(({ name }, index) => ({
        label: name,
        stroke: colour(STROKES[index % STROKES.length]!),
        width: 2,
        points: { show: few, size: 6 },
      })),
    ],
  }, [data.x, ...data.series.map(({ values }) => values)], parent);
  const observer = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: Math.max(180, parent.clientHeight - 40) }));
  observer.observe(parent);
  return () => {
    observer.disconnect();
    plot.destroy();
  };
}
