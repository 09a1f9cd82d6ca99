import { useEffect, useRef } from "preact/hooks";
import { theme } from "../theme.ts";
import type { Chart, ChartData } from "./chart.ts";

const CHART = "./chart.js";
const load = (): Promise<{ drawChart: (parent: HTMLElement, data: ChartData) => Chart }> => import(CHART);

/** A chart; what draws it is loaded on first use. Values that change are drawn into the same chart. */
export function ChartBox({ data }: { data: ChartData }) {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const latest = useRef(data);
  latest.current = data;
  const names = JSON.stringify([data.along, data.names, data.series.map(({ name }) => name)]);
  useEffect(() => {
    let gone = false;
    void load().then(({ drawChart }) => {
      if (!gone && host.current) chart.current = drawChart(host.current, latest.current);
    });
    return () => {
      gone = true;
      chart.current?.remove();
      chart.current = null;
    };
  }, [names, theme.value]);
  useEffect(() => chart.current?.update(data), [data]);
  return <div class="chart" ref={host} role="img" aria-label={`Chart of ${data.series.map(({ name }) => name).join(", ")} over ${data.x.length} ${data.time ? "times" : "rows"}`} />;
}
