// Colours, type and sizes of every figure: a palette that colour-blind readers can tell apart (Okabe and Ito 2008).

export const WIDTH = 760;
export const MARGIN_LEFT = 64;
/** Wide enough for the label of a limit beside the frame. */
export const MARGIN_RIGHT = 84;
export const FONT_FAMILY = '"DejaVu Sans", Verdana, sans-serif';

export const INK = '#1c2530';
export const MUTED = '#56616e';
export const GRID = '#e4e8ed';
export const PAPER = '#ffffff';
/** Promises and limits. */
export const LIMIT = '#b3261e';
export const GOOD = '#0072b2';
export const MISSED = '#d55e00';

const ARM_COLOURS = ['#0072b2', '#d55e00', '#009e73', '#aa4499', '#8a6d00', '#4aa3d8', '#4d4d4d'] as const;
/** The same hues, dark enough for small text on white. */
const ARM_INKS = ['#005a8e', '#a84600', '#00694b', '#8a2f7a', '#6b5200', '#23719c', '#333333'] as const;
const ARM_SYMBOLS = ['circle', 'square', 'triangle', 'diamond2', 'star', 'hexagon', 'wye'] as const;

export interface ArmStyle {
  readonly colour: string;
  readonly ink: string;
  readonly symbol: (typeof ARM_SYMBOLS)[number];
}

/** Style of the arm at a position in the config; colour and shape both carry it. */
export function armStyle(position: number): ArmStyle {
  const at = Math.max(0, position);
  return {
    colour: ARM_COLOURS[at % ARM_COLOURS.length]!,
    ink: ARM_INKS[at % ARM_INKS.length]!,
    symbol: ARM_SYMBOLS[at % ARM_SYMBOLS.length]!,
  };
}

/** Width of a text in px, estimated from above for DejaVu Sans. */
export function textWidth(text: string, sizePx: number, bold = false): number {
  let units = 0;
  for (const character of text) {
    if (/[ilj.,:;|!'()[\]\s]/.test(character)) units += 0.4;
    else if (/[mwMW@%∞—]/.test(character)) units += 0.97;
    else if (/[A-Z_~=+<>±]/.test(character)) units += 0.76;
    else if (character.codePointAt(0)! > 0x2e80) units += 1.05;
    else units += 0.63;
  }
  return units * sizePx * (bold ? 1.1 : 1);
}

/** Breaks a text into lines no wider than `maxPx`; a single long word is cut with an ellipsis. */
export function wrapText(text: string, sizePx: number, maxPx: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && textWidth(longer, sizePx) <= maxPx) lines[lines.length - 1] = longer;
    else lines.push(shorten(word, sizePx, maxPx));
  }
  return lines;
}

/** The text, cut with an ellipsis where it is wider than `maxPx`. */
export function shorten(text: string, sizePx: number, maxPx: number): string {
  if (textWidth(text, sizePx) <= maxPx) return text;
  let kept = [...text];
  while (kept.length > 1 && textWidth(`${kept.join('')}…`, sizePx) > maxPx) kept = kept.slice(0, -1);
  return `${kept.join('')}…`;
}
