// A chart of numeric series: uPlot, loaded when a page needs it.
import uPlot from "uplot";

export type Series = {
  name: string;
  values: (number | null)[];
  /** The variable of its colour; without it the colours are taken in turn. */
  stroke?: string;
};
export type ChartData = {
  x: number[];
  /** What the horizontal axis is: the name of a column, or "row". */
  along: string;
  /** Seconds since 1970 when the horizontal axis is time. */
  time: boolean;
  /** Names in place of numbers on the horizontal axis. */
  names?: string[];
  series: Series[];
  /** Counts up to the present: bars on a clock, and the last values in the legend. */
  present?: boolean;
};
/** A chart that was drawn. `update` shows other values of the same series. */
export type Chart = { update: (data: ChartData) => void; remove: () => void };

const STROKES = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];

/** Draws a chart into an element. */
export function drawChart(parent: HTMLElement, data: ChartData): Chart {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const { names, present } = data;
  const along = names
    ? { values: (_plot: uPlot, at: number[]) => at.map((place) => (Number.isInteger(place) ? (names[place] ?? "") : "")) }
    : present && { values: (_plot: uPlot, at: number[]) => at.map((seconds) => clock(seconds)) };
  const few = data.x.length <= 60;
  const bars = present || (names && data.series.length === 1);
  const last = (plot: uPlot, index: number) => plot.data[index]?.at(-1);
  const plot = new uPlot({
    width: parent.clientWidth,
    height: heightOf(parent),
    // The last label on the horizontal axis is wider than its place.
    padding: [null, 26, null, null],
    scales: { x: { time: data.time, ...(names && { range: (_plot: uPlot, min: number, max: number): uPlot.Range.MinMax => [min - 0.6, max + 0.6] }) }, y: bars ? { range: (_plot, min, max) => fromZero(min, max, present ? 5 : 0) } : {} },
    axes: [{ ...axis, ...along }, { ...axis, size: present ? 50 : 70 }],
    series: [
      {
        label: data.along,
        value: (_plot: uPlot, at: number | null) => (at === null ? "–" : names ? (names[at] ?? "") : data.time ? new Date(at * 1000).toLocaleString("en-GB") : String(at)),
        ...(present && { value: (plot: uPlot, at: number | null) => clock(at ?? last(plot, 0) ?? 0, true) }),
      },
      ...data.series.map(({ name, stroke }, index) => {
        const line = colour(stroke ?? STROKES[index % STROKES.length]!);
        const shown = (plot: uPlot, value: number | null) => String(value ?? (present ? last(plot, index + 1) ?? "" : "–"));
        // Between names there is nothing for a line to go through.
        if (!bars) return { label: name, stroke: line, width: names ? 0 : 2, points: { show: few || names !== undefined, size: names ? 8 : 6, ...(names && { fill: line }) }, value: shown };
        return {
          label: name, stroke: line, fill: line, width: 0, points: { show: false },
          paths: uPlot.paths.bars!(present ? { size: [0.9, 12], align: -1 } : { size: [0.7, 80] }),
          value: shown,
        };
      }),
    ],
  }, valuesOf(data), parent);
  const observer = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: heightOf(parent) }));
  observer.observe(parent);
  return {
    update: (next) => plot.setData(valuesOf(next)),
    remove: () => {
      observer.disconnect();
      plot.destroy();
    },
  };
}

/** Bars stand on zero. */
const fromZero = (min: number, max: number, least: number): uPlot.Range.MinMax => [Math.min(0, min * 1.1), Math.max(least, max * 1.1)];

/** Below the chart there is its legend. */
const heightOf = (parent: HTMLElement): number => Math.max(180, parent.clientHeight - 40);

/** The time of day of seconds since 1970. */
const clock = (at: number, seconds = false): string =>
  new Date(at * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...((seconds || at % 60 !== 0) && { second: "2-digit" }) });

const valuesOf = ({ x, series }: ChartData): uPlot.AlignedData => [x, ...series.map(({ values }) => values)];
