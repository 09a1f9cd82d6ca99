import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { stringifyExact } from "../api/json.ts";
import { ChartBox } from "./chart_box.tsx";
import { Map } from "./map.tsx";
import { PlanTree } from "./plan.tsx";
import { ResultGrid } from "./result_grid.tsx";
import { type GraphqlAnswer, type Result, ROW_LIMIT } from "./run.ts";
import { chartOf, shapesOf } from "./series.ts";
import { cancel, outcome, running } from "./state.ts";

/** What came of the last run. */
export function OutcomeBox() {
  const now = outcome.value;
  return (
    <section class="outcome" aria-label="Result">
      {running.value && <RunningBar />}
      {!now && !running.value && <p class="hint padded"><span class="keys">Ctrl+Enter runs what is written. </span>The result appears here.</p>}
      {now?.kind === "failure" && !running.value && <p class={now.failure.cancelled ? "note" : "problem flat"} role="alert">{now.failure.text}</p>}
      {now?.kind === "plan" && <PlanTree explained={now.explained} />}
      {now?.kind === "rows" && <Rows key={now.result.milliseconds} result={now.result} />}
      {now?.kind === "graphql" && <Graphql key={now.milliseconds} answer={now.answer} list={now.list} milliseconds={now.milliseconds} />}
    </section>
  );
}

function RunningBar() {
  const seconds = useSignal(0);
  useEffect(() => {
    const timer = setInterval(() => (seconds.value = Math.floor((performance.now() - (running.value?.started ?? 0)) / 1000)), 250);
    return () => clearInterval(timer);
  }, []);
  const rows = running.value?.rows ?? 0;
  return (
    <div class="running" role="status">
      <progress aria-label="Running" />
      <span>Running for {seconds.value} s{rows > 0 && `, ${rows.toLocaleString("en")} rows so far`}{outcome.value && outcome.value.kind !== "failure" && ". Below is the result of the run before."}</span>
      <button type="button" onClick={cancel}>Cancel</button>
    </div>
  );
}

type Shown = "rows" | "chart" | "map" | "json";

function Rows({ result, json }: { result: Result; json?: unknown }) {
  const shown = useSignal<Shown>("rows");
  const chart = useMemo(() => chartOf(result), [result]);
  const shapes = useMemo(() => shapesOf(result), [result]);
  const parts: [Shown, string][] = [["rows", "Rows"]];
  if (chart) parts.push(["chart", "Chart"]);
  if (shapes) parts.push(["map", "Map"]);
  if (json !== undefined) parts.push(["json", "JSON"]);
  return (
    <>
      <div class="outcome-head">
        <span role="status">{summary(result)}</span>
        {parts.length > 1 && (
          <div class="tabs" role="group" aria-label="How to show the result">
            {parts.map(([name, text]) => <button key={name} type="button" aria-pressed={shown.value === name} onClick={() => (shown.value = name)}>{text}</button>)}
          </div>
        )}
      </div>
      {shown.value === "rows" && result.rows.length > 0 && <ResultGrid result={result} />}
      {shown.value === "chart" && chart && <ChartBox data={chart} />}
      {shown.value === "map" && shapes && <Map shapes={shapes} />}
      {shown.value === "json" && <Json value={json} />}
    </>
  );
}

function summary({ rows, cut, affected, statements, milliseconds }: Result): string {
  const count = rows.length.toLocaleString("en");
  const time = `${Math.round(milliseconds).toLocaleString("en")} ms`;
  if (cut) return `The first ${ROW_LIMIT.toLocaleString("en")} rows, ${time}. Export CSV gives all of them.`;
  const written = affected === undefined ? "" : `${affected.toLocaleString("en")} row${affected === 1 ? "" : "s"} written, `;
  const ran = statements === undefined ? "" : `${statements} statements in one transaction, `;
  return `${ran}${written}${rows.length === 0 && (affected !== undefined || statements !== undefined) ? "" : `${count} row${rows.length === 1 ? "" : "s"}, `}${time}`;
}

const Json = ({ value }: { value: unknown }) => <pre class="json" tabIndex={0} aria-label="Answer as JSON">{stringifyExact(value, 2)}</pre>;

function Graphql({ answer, list, milliseconds }: { answer: GraphqlAnswer; list: Result | null; milliseconds: number }) {
  return (
    <>
      {answer.errors?.map(({ message, path, locations }, index) => (
        <p key={index} class="problem flat" role="alert">
          {message}
          {path && ` (at ${path.join(".")})`}
          {!path && locations?.[0] && ` (line ${locations[0].line}, column ${locations[0].column})`}
        </p>
      ))}
      {list
        ? <Rows result={list} json={answer} />
        : (
          <>
            <div class="outcome-head"><span role="status">{Math.round(milliseconds)} ms</span></div>
            <Json value={answer} />
          </>
        )}
    </>
  );
}
