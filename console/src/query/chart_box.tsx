import { useEffect, useRef } from "preact/hooks";
import { theme } from "../theme.ts";
import type { ChartData } from "./chart.ts";

const CHART = "./chart.js";
const load = (): Promise<{ drawChart: (parent: HTMLElement, data: ChartData) => () => void }> => import(CHART);

/** A chart; what draws it is loaded on first use. */
export function ChartBox({ data }: { data: ChartData }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let remove: (() => void) | null = null;
    let gone = false;
    void load().then(({ drawChart }) => {
      if (!gone && host.current) remove = drawChart(host.current, data);
    });
    return () => {
      gone = true;
      remove?.();
    };
  }, [data, theme.value]);
  return <div class="chart" ref={host} role="img" aria-label={`Chart of ${data.series.map(({ name }) => name).join(", ")} over ${data.x.length} rows`} />;
}
