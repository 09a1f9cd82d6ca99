import type { Explained, Plan } from "./run.ts";

/** A plan as a tree; the bar of a node is its share of the whole. */
export function PlanTree({ explained }: { explained: Explained }) {
  const { Plan: root } = explained;
  const measured = root["Actual Total Time"] !== undefined;
  return (
    <div class="plan" role="region" tabIndex={0} aria-label="Plan">
      <p class="hint">
        {measured
          ? `Run in ${explained["Execution Time"]} ms, planned in ${explained["Planning Time"]} ms. Bars show time.`
          : "Estimated, not run. Bars show cost."}
      </p>
      <ul class="plan-tree"><Node plan={root} whole={weight(root)} stopped={false} /></ul>
    </div>
  );
}

/** Time where it was measured, else cost. */
function weight(plan: Plan): number {
  const time = plan["Actual Total Time"];
  return time === undefined ? plan["Total Cost"] : time * (plan["Actual Loops"] ?? 1);
}

const SHOWN = /Cond|Filter|Key|Strategy|Join Type|Rows Removed|Hit Blocks|Read Blocks|Method|Memory|Workers/;
const number = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 2 });

/** Nodes that read all rows of the nodes below them before they give one. */
const READS_ALL = /^(Sort|Hash|Aggregate|Materialize)$/;

/** `stopped` says that a LIMIT above may have ended the node early, so that its estimate cannot be judged. */
function Node({ plan, whole, stopped }: { plan: Plan; whole: number; stopped: boolean }) {
  const below = plan.Plans ?? [];
  const own = Math.max(0, weight(plan) - below.reduce((sum, child) => sum + weight(child), 0));
  const share = whole > 0 ? own / whole : 0;
  const details = Object.entries(plan).filter(([name, value]) => SHOWN.test(name) && value !== 0);
  const actual = plan["Actual Rows"];
  const stops = plan["Node Type"] === "Limit" || (stopped && !READS_ALL.test(plan["Node Type"]));
  const off = actual !== undefined && Math.max(actual, 1) / Math.max(plan["Plan Rows"], 1);
  return (
    <li>
      <div class="plan-node">
        <p>
          <strong>{plan["Node Type"]}</strong>{" "}
          {plan["Relation Name"] && <code>{plan["Relation Name"]}</code>}{" "}
          {plan["Index Name"] && <small>by <code>{plan["Index Name"]}</code></small>}
        </p>
        <meter min={0} max={1} value={share} aria-label="Share of the whole">{Math.round(share * 100)}%</meter>
        <small>
          {Math.round(share * 100)}% · {plan["Actual Total Time"] !== undefined ? `${number(weight(plan))} ms` : `cost ${number(plan["Total Cost"])}`}
          {" · "}{actual !== undefined ? `${number(actual)} rows (estimated ${number(plan["Plan Rows"])})` : `${number(plan["Plan Rows"])} rows`}
        </small>
        {off !== false && (off > 10 || (off < 0.1 && !stopped)) && <small class="bad">The estimate is far off: ANALYZE may help.</small>}
        {details.map(([name, value]) => <small key={name} class="plan-detail">{name}: <code>{Array.isArray(value) ? value.join(", ") : String(value)}{name.includes("Memory") && " kB"}</code></small>)}
      </div>
      {below.length > 0 && <ul>{below.map((child, index) => <Node key={index} plan={child} whole={whole} stopped={stops} />)}</ul>}
    </li>
  );
}
