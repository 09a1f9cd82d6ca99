// Which rows are in view. Browsers limit the height of an element, so a long table scrolls by a
// shorter element: the wheel and the keys move by rows, the scroll bar by a fraction of the table.

/** The height of the element at most, below every browser's limit (Firefox 17.8 million pixels, Chromium 33 million). */
const MAX_HEIGHT = 12_000_000;

export class Scroll {
  /** The first row in view, with its fraction. */
  top = 0;
  rows = 0;
  view = 0;

  constructor(readonly rowHeight: number) {}

  get height(): number {
    return Math.min(this.rows * this.rowHeight, MAX_HEIGHT);
  }

  /** Whether a pixel of the bar is more than a pixel of rows. */
  get scaled(): boolean {
    return this.rows * this.rowHeight > MAX_HEIGHT;
  }

  /** Rows that fit. */
  get visible(): number {
    return this.view / this.rowHeight;
  }

  get maxTop(): number {
    return Math.max(0, this.rows - this.visible);
  }

  /** The position of the scroll bar for the rows in view. */
  get position(): number {
    if (!this.scaled) return this.top * this.rowHeight;
    return this.maxTop === 0 ? 0 : (this.top / this.maxTop) * (this.height - this.view);
  }

  /** The bar was moved. */
  follow(position: number): void {
    const share = this.height > this.view ? position / (this.height - this.view) : 0;
    this.moveTo(this.scaled ? share * this.maxTop : position / this.rowHeight);
  }

  moveTo(row: number): void {
    this.top = Math.max(0, Math.min(this.maxTop, row));
  }

  /** Moves as little as needed to show a row. */
  show(row: number): void {
    if (row < this.top) this.moveTo(row);
    else if (row + 1 > this.top + this.visible) this.moveTo(row + 1 - this.visible);
  }
}
