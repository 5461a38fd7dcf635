// A table before it is HTML or Markdown: the same rows feed both.

/** A cell of a table: text, or text that links to the place that it comes from. */
export interface LinkedText {
  readonly text: string;
  /** Anchor inside the report, without `#`. */
  readonly anchor: string;
  /** Small print that belongs to the text; in brackets where there is no second line. */
  readonly note?: string;
}

export type Inline = string | LinkedText;

export interface Column {
  readonly label: string;
  readonly align: 'left' | 'right';
}

export interface Row {
  readonly cells: readonly Inline[];
  readonly tone?: 'good' | 'bad' | 'warn' | 'muted';
}

export interface Table {
  readonly title: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Small print below. */
  readonly notes: readonly string[];
}

export const left = (label: string): Column => ({ label, align: 'left' });
export const right = (label: string): Column => ({ label, align: 'right' });

/** The text with its note in brackets. */
export function textOf(inline: Inline): string {
  if (typeof inline === 'string') return inline;
  return inline.note ? `${inline.text} (${inline.note})` : inline.text;
}

/** Stands under every table that shows energy (METHOD 1.10). */
export const ENERGY_SCOPE =
  'Energy is that of the GPU board. Host, cooling and the losses of the building (PUE) are not in it.';
