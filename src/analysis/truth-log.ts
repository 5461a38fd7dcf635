// What did the server really do? Its log of sends, one row per request, as run-relative times.

export interface TruthRow {
  readonly id: string;
  /** `ok`, `blocked` (the kernel had no room for a token: its send time means nothing), `aborted` or `unfinished`. */
  readonly status: string;
  /** When the kernel had the last byte of the request; null where the server does not know. */
  readonly kernelNs: number | null;
  /** When the server had read the last byte of the request, ns after the run's origin. */
  readonly receivedNs: number;
  /** When its schedule wanted the first token to leave. */
  readonly firstDueNs: number;
  /** When write() of each token had returned. */
  readonly sendsNs: readonly number[];
}

const KERNEL_COLUMN = 't_kernel_rx_ns';
const COLUMNS = ['x_request_id', 't_request_complete_ns', 't_first_due_ns', 'status', 'sends_ns'] as const;

/**
 * Reads the CSV that `tokbench mock-engine --log` and the C server write.
 * @param originNs absolute CLOCK_MONOTONIC reading from which all times count.
 * @throws Error when a column is missing, a row is torn or a time is no number.
 */
export function parseTruthLog(text: string, originNs: bigint): Map<string, TruthRow> {
  const [header = '', ...lines] = text.split('\n');
  const names = header.split(',');
  const positions = COLUMNS.map((name) => {
    const position = names.indexOf(name);
    if (position === -1) throw new Error(`the truth log has no column ${name}: ${header}`);
    return position;
  });
  const kernelAt = names.indexOf(KERNEL_COLUMN);
  const rows = new Map<string, TruthRow>();
  lines.forEach((line, index) => {
    if (line === '') return;
    const fields = line.split(',');
    if (fields.length !== names.length) throw new Error(`line ${index + 2} of the truth log is torn: ${line}`);
    const [id, received, firstDue, status, sends] = positions.map((position) => fields[position]!);
    const kernel = kernelAt === -1 ? '' : fields[kernelAt]!;
    if (rows.has(id!)) throw new Error(`the truth log has two rows for ${id}`);
    rows.set(id!, {
      id: id!,
      status: status!,
      kernelNs: kernel === '' ? null : relative(kernel, originNs),
      receivedNs: relative(received!, originNs),
      firstDueNs: relative(firstDue!, originNs),
      sendsNs: sends === '' ? [] : sends!.split(';').map((time) => relative(time, originNs)),
    });
  });
  return rows;
}

function relative(digits: string, originNs: bigint): number {
  if (!/^\d+$/.test(digits)) throw new Error(`"${digits}" in the truth log is no time in ns`);
  return Number(BigInt(digits) - originNs);
}
