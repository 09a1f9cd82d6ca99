// A program that uses the golden interfaces: `tsc --strict --target es2022 --noEmit use.ts` must find each
// expected error, and no other.

import type { Api, Geometry, Interval, Point, Range } from "./golden";

declare const api: Api;

export async function calls(): Promise<void> {
    const [row] = await api.name({ a: 1, b: "two" });
    const id: number = row!.id;
    // @ts-expect-error a parameter is missing
    await api.name({ a: 1 });
    // @ts-expect-error a parameter too many
    await api.name({ a: 1, b: "two", c: 3 });
    // @ts-expect-error of another type
    await api.name({ a: "one", b: "two" });

    await api.notDryRun({ anything: [id] });
    const csv: string = await api["as-csv"]({});
    const lines: string = await api["as.ndjson"]({ more: csv });
    await api["new"]({});
    // @ts-expect-error a method without parameters takes none
    await api["new"]({ lines });
    const nothing: Record<string, unknown>[] = await api.nothing({});
    void nothing;
}

export async function values(every: Parameters<Api["every"]>[0]): Promise<void> {
    const [all] = await api.every(every);
    const exact: string = all!.numeric;
    const interval: Interval = all!.interval;
    const corners: Point[] = all!.polygon;
    const bound: string | null = all!.numrange.lower;
    const ranges: Range<number>[] = all!.int8multirange;
    const house: number[] | null = all!.addresses[0]!["house no"];
    // @ts-expect-error unknown must be narrowed
    const json: string = all!.json;
    const geometry: Geometry = { type: "GeometryCollection", geometries: all!.geographies };
    const anything: Record<string, unknown> = all!;
    void [exact, interval, corners, bound, ranges, house, json, geometry, anything];
}

export async function nulls(): Promise<void> {
    const [maybe] = await api.nullable({});
    // @ts-expect-error it may be null
    const number: number = maybe!.int4;
    // @ts-expect-error it may be null
    maybe!.point.x;
    void number;
}
