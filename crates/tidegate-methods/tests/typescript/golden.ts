export interface Api {
    "as-csv"(params: Record<string, never>): Promise<string>;
    "as.ndjson"(params: Record<string, unknown>): Promise<string>;
    delete(params: Record<string, never>): Promise<{ "a b": number; "1st": number; "é": number; "\"": number; "\\": number; "\u000a": number; "\u2028": number; new: number; _ok$1: number; }[]>;
    every(params: { int2: number; int4: number; int8: number; oid: number; float4: number; float8: number; numeric: string; bool: boolean; text: string; varchar: string; uuid: string; inet: string; money: string; bit: string; mood: string; price: string; json: unknown; jsonb: unknown; date: string; time: string; timetz: string; timestamp: string; timestamptz: string; interval: Interval; bytea: string; point: Point; line: Line; lseg: Segment; box: Segment; path: Path; polygon: Point[]; circle: Circle; int4range: Range<number>; numrange: Range<string>; tstzrange: Range<string>; int8multirange: Range<number>[]; address: { street: string | null; "house no": number[] | null; extra: unknown; }; addresses: { street: string | null; "house no": number[] | null; extra: unknown; }[]; record: Record<string, string | null>; int4s: number[]; texts: string[]; jsons: unknown[]; ranges: Range<string>[]; geometry: Geometry; geographies: Geometry[]; }): Promise<{ int2: number; int4: number; int8: number; oid: number; float4: number; float8: number; numeric: string; bool: boolean; text: string; varchar: string; uuid: string; inet: string; money: string; bit: string; mood: string; price: string; json: unknown; jsonb: unknown; date: string; time: string; timetz: string; timestamp: string; timestamptz: string; interval: Interval; bytea: string; point: Point; line: Line; lseg: Segment; box: Segment; path: Path; polygon: Point[]; circle: Circle; int4range: Range<number>; numrange: Range<string>; tstzrange: Range<string>; int8multirange: Range<number>[]; address: { street: string | null; "house no": number[] | null; extra: unknown; }; addresses: { street: string | null; "house no": number[] | null; extra: unknown; }[]; record: Record<string, string | null>; int4s: number[]; texts: string[]; jsons: unknown[]; ranges: Range<string>[]; geometry: Geometry; geographies: Geometry[]; }[]>;
    formatted(params: { d: string; }): Promise<{ d: string | null; r: Range<string> | null; }[]>;
    name(params: { a: number; b: string; }): Promise<{ id: number; }[]>;
    "new"(params: Record<string, never>): Promise<{ id: number; }[]>;
    notDryRun(params: Record<string, unknown>): Promise<Record<string, unknown>[]>;
    nothing(params: Record<string, never>): Promise<Record<string, never>[]>;
    nullable(params: Record<string, never>): Promise<{ int2: number | null; int4: number | null; int8: number | null; oid: number | null; float4: number | null; float8: number | null; numeric: string | null; bool: boolean | null; text: string | null; varchar: string | null; uuid: string | null; inet: string | null; money: string | null; bit: string | null; mood: string | null; price: string | null; json: unknown; jsonb: unknown; date: string | null; time: string | null; timetz: string | null; timestamp: string | null; timestamptz: string | null; interval: Interval | null; bytea: string | null; point: Point | null; line: Line | null; lseg: Segment | null; box: Segment | null; path: Path | null; polygon: Point[] | null; circle: Circle | null; int4range: Range<number> | null; numrange: Range<string> | null; tstzrange: Range<string> | null; int8multirange: Range<number>[] | null; address: { street: string | null; "house no": number[] | null; extra: unknown; } | null; addresses: { street: string | null; "house no": number[] | null; extra: unknown; }[] | null; record: Record<string, string | null> | null; int4s: number[] | null; texts: string[] | null; jsons: unknown[] | null; ranges: Range<string>[] | null; geometry: Geometry | null; geographies: Geometry[] | null; }[]>;
}

export type Interval = { y: number; m: number; d: number; h: number; i: number; s: number; };

export type Line = { A: number; B: number; C: number; };

export type Segment = { start: Point; end: Point; };

export type Path = { open: boolean; points: Point[]; };

export type Circle = { center: Point; radius: number; };

export type Point = { x: number; y: number; };

export type Range<T> = { lower: T | null; upper: T | null; lowerInclusive: boolean; upperInclusive: boolean; empty?: true; };

export type Geometry =
    | { type: "Point"; coordinates: number[]; }
    | { type: "LineString" | "MultiPoint"; coordinates: number[][]; }
    | { type: "Polygon" | "MultiLineString"; coordinates: number[][][]; }
    | { type: "MultiPolygon"; coordinates: number[][][][]; }
    | { type: "GeometryCollection"; geometries: Geometry[]; };
