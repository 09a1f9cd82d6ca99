import { useSignal } from "@preact/signals";
import { type Filter, needsValue, type Operator, OPERATORS, type Order } from "./condition.ts";
import type { TableView } from "./view.ts";

/** Conditions and order of the grid; they take effect together. */
export function FilterBar({ view, onClose }: { view: TableView; onClose: () => void }) {
  const { columns } = view.table;
  const first = columns[0]?.name ?? "";
  const filters = useSignal<Filter[]>(view.filters.value.length > 0 ? view.filters.value : [{ column: first, operator: "=", value: "" }]);
  const order = useSignal<Order | null>(view.order.value[0] ?? null);
  const change = (at: number, part: Partial<Filter>) => {
    filters.value = filters.value.map((filter, index) => (index === at ? { ...filter, ...part } : filter));
  };
  const apply = (event: Event) => {
    event.preventDefault();
    const used = filters.value.filter(({ operator, value }) => !needsValue(operator) || value !== "");
    view.arrange(used, order.value ? [order.value] : []);
  };
  const clear = () => {
    view.arrange([], []);
    onClose();
  };
  const names = columns.map(({ name }) => <option key={name} value={name}>{name}</option>);
  return (
    <form class="filters" onSubmit={apply} aria-label="Filter and order">
      {filters.value.map((filter, index) => (
        <div class="filter" key={index}>
          <select aria-label="Column" value={filter.column} onChange={(event) => change(index, { column: event.currentTarget.value })}>{names}</select>
          <select aria-label="Comparison" value={filter.operator} onChange={(event) => change(index, { operator: event.currentTarget.value as Operator })}>
            {OPERATORS.map(([operator, text]) => <option key={operator} value={operator}>{text}</option>)}
          </select>
          {needsValue(filter.operator) && (
            <input aria-label="Value" placeholder="value" value={filter.value} onInput={(event) => change(index, { value: event.currentTarget.value })} />
          )}
          <button type="button" class="quiet" aria-label="Remove this condition" onClick={() => (filters.value = filters.value.filter((_, at) => at !== index))}>✕</button>
        </div>
      ))}
      <div class="filter">
        <label>Order by{" "}
          <select
            value={order.value?.column ?? ""}
            onChange={({ currentTarget: { value } }) => (order.value = value ? { column: value, descending: order.value?.descending ?? false } : null)}
          >
            <option value="">the key</option>
            {names}
          </select>
        </label>
        {order.value && (
          <select aria-label="Direction" value={order.value.descending ? "down" : "up"} onChange={({ currentTarget: { value } }) => (order.value = { column: order.value!.column, descending: value === "down" })}>
            <option value="up">ascending</option>
            <option value="down">descending</option>
          </select>
        )}
        <span class="spread" />
        <button type="button" onClick={() => (filters.value = [...filters.value, { column: first, operator: "=", value: "" }])}>Add condition</button>
        <button type="button" onClick={clear}>Clear</button>
        <button type="submit" class="primary">Apply</button>
      </div>
    </form>
  );
}
