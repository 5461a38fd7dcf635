// Text that arrives in pieces, as whole lines.

/** A listener for pieces of text that calls back once per line, without its newline. */
export function lineSplitter(onLine: (line: string) => void): (piece: string) => void {
  let rest = '';
  return (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  };
}
