import type { Position, Shape } from "./series.ts";

const WIDTH = 900;
const HEIGHT = 420;
const MARGIN = 24;
/** The limit on labels. More would cover each other. */
const MOST_LABELS = 25;

/** Draws shapes, scaled to fit, without a background map. Degrees are scaled by the latitude. */
export function Map({ shapes }: { shapes: Shape[] }) {
  const points = shapes.flatMap(({ rings }) => rings.flat());
  const place = projection(points);
  const labelled = shapes.length <= MOST_LABELS;
  const path = (rings: Position[][], close: boolean) =>
    rings.map((ring) => `M${ring.map((point) => place(point).map((at) => at.toFixed(1)).join(" ")).join("L")}${close ? "Z" : ""}`).join("");
  return (
    <svg class="map" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${shapes.length} shapes drawn to fit`}>
      {shapes.map(({ kind, rings, label }, index) => {
        if (kind === "point") {
          const [x, y] = place(rings[0]![0]!);
          const left = x > WIDTH / 2;
          return (
            <g key={index}>
              <circle cx={x} cy={y} r={6}><title>{label}</title></circle>
              {labelled && label !== "" && <text x={left ? x - 18 : x + 18} y={y} text-anchor={left ? "end" : "start"}>{label}</text>}
            </g>
          );
        }
        return <path key={index} class={kind} d={path(rings, kind === "area")}><title>{label}</title></path>;
      })}
    </svg>
  );
}

function projection(points: Position[]): (point: Position) => Position {
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    west = Math.min(west, x);
    east = Math.max(east, x);
    south = Math.min(south, y);
    north = Math.max(north, y);
  }
  const degrees = west >= -180 && east <= 180 && south >= -90 && north <= 90;
  const squeeze = degrees ? Math.max(0.1, Math.cos(((south + north) / 2) * (Math.PI / 180))) : 1;
  const scale = Math.min(
    (WIDTH - 2 * MARGIN) / Math.max(1e-9, (east - west) * squeeze),
    (HEIGHT - 2 * MARGIN) / Math.max(1e-9, north - south),
  );
  const [middleX, middleY] = [(west + east) / 2, (south + north) / 2];
  return ([x, y]) => [WIDTH / 2 + (x - middleX) * squeeze * scale, HEIGHT / 2 - (y - middleY) * scale];
}
