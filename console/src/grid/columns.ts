// The positions of columns. Only visible columns are drawn, so that 1,200 columns cost as much as ten.

export class ColumnPlaces {
  private readonly ends: number[] = [];

  constructor(widths: number[]) {
    let end = 0;
    for (const width of widths) this.ends.push((end += width));
  }

  get total(): number {
    return this.ends.at(-1) ?? 0;
  }

  left(index: number): number {
    return index === 0 ? 0 : (this.ends[index - 1] ?? 0);
  }

  width(index: number): number {
    return (this.ends[index] ?? 0) - this.left(index);
  }

  /** The columns between two places, as first and one behind the last. */
  between(left: number, right: number): [number, number] {
    const first = this.at(left);
    let last = first;
    while (last < this.ends.length && this.left(last) < right) last += 1;
    return [first, last];
  }

  /** The column at a place. */
  private at(place: number): number {
    let low = 0;
    let high = this.ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.ends[middle] ?? 0) <= place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Widths that fill the space. The columns in `grows` get equal parts of the space that is left. */
export function fill(widths: number[], grows: boolean[], space: number): number[] {
  const left = space - widths.reduce((sum, width) => sum + width, 0);
  const growing = grows.filter(Boolean).length;
  if (left <= 0 || growing === 0) return widths;
  const share = Math.min(MOST_GROWTH, Math.floor(left / growing));
  return widths.map((width, index) => (grows[index] ? width + share : width));
}

const MOST_GROWTH = 360;
