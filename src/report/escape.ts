// Makes foreign text safe in HTML, in XML and in Markdown: arm names and error texts come from outside.

const HTML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Replaces control characters and lone surrogates, which XML forbids; line breaks become spaces. */
export function plainText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\t\n\r\u2028\u2029]+/g, ' ')
    .replace(/[\p{Cc}\ufffe\uffff\u202a-\u202e\u2066-\u2069]/gu, '\ufffd');
}

export function escapeHtml(text: string): string {
  return plainText(text).replace(/[&<>"']/g, (character) => HTML[character]!);
}

export function escapeMarkdown(text: string): string {
  return plainText(text)
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/[\\`*_[\]|~#]/g, (character) => `\\${character}`);
}

/** A name that is safe as a file name and as an anchor; the same text always gives the same name. */
export function slug(text: string): string {
  const safe = text
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return safe.slice(0, 120) || 'unnamed';
}
