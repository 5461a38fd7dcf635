// The few DOM members that drawing needs, and the one way in which it makes elements.

import type { PlotModule } from './spec.ts';

const NAMESPACE = 'http://www.w3.org/2000/svg';

export interface SvgNode {
  readonly nodeName: string;
  readonly childNodes: Iterable<SvgNode>;
  textContent: string | null;
  setAttribute(name: string, value: string): void;
  getAttribute(name: string): string | null;
  appendChild(child: SvgNode): void;
  append(...children: SvgNode[]): void;
  querySelectorAll(selector: string): Iterable<SvgNode>;
  toString(): string;
}

export interface SvgDocument {
  createElementNS(namespace: string, tag: string): SvgNode;
}

export interface Canvas {
  readonly plot: PlotModule;
  readonly document: SvgDocument;
}

export type Attributes = Readonly<Record<string, string | number>>;

export function element(canvas: Canvas, tag: string, attributes: Attributes, text?: string): SvgNode {
  const node = canvas.document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  if (text !== undefined) node.textContent = text;
  return node;
}

/** The outermost element of a figure. */
export function rootElement(canvas: Canvas, attributes: Attributes): SvgNode {
  return element(canvas, 'svg', { xmlns: NAMESPACE, ...attributes });
}
