// A minimal speaker of the simulated GPU's line protocol, as a process of its own: constant power, ideal levers.
//
// argv: socket path. Prints `ready` when it listens. `fault deny <verb> code=<n>` makes a verb fail.

import { createServer, type Socket } from 'node:net';
import { decodeSimLine, encodeSimLine, type SimFields } from '../../src/core/index.ts';

const POWER_MW = 100_000;
const TICK_MS = 100;
const startNs = process.hrtime.bigint();
const board = { lockedMinMhz: 0, lockedMaxMhz: 0, limitMw: 350_000 };
const denied = new Map<string, number>();

const elapsedMs = () => Number(process.hrtime.bigint() - startNs) / 1e6;
const counterMj = () => Math.floor((Math.floor(elapsedMs() / TICK_MS) * TICK_MS * POWER_MW) / 1000);

const info = {
  uuid: 'GPU-00000000-test',
  name: 'Simulated test board',
  serial: '1',
  driver: '0.0',
  pci: '00000000:01:00.0',
  default_mw: 350_000,
  min_mw: 100_000,
  max_mw: 400_000,
  f_max: 1980,
  f_min: 345,
  f_step: 15,
  mem_mhz: 2619,
  tick_ms: TICK_MS,
  mem_total_bytes: 80_000_000_000,
};

type Answer = Record<string, string | number | bigint> | number;

const read = (): Answer => ({
  at_ns: process.hrtime.bigint(),
  energy_mj: counterMj(),
  power_instant_mw: POWER_MW,
  power_average_mw: POWER_MW,
  sm_mhz: board.lockedMaxMhz || 1980,
  mem_mhz: 2619,
  temp_c: 50,
  reasons: 4,
  util_pct: 7,
  enforced_mw: board.limitMw,
  limit_mw: board.limitMw,
  mem_used_bytes: 1,
});

function lock(fields: SimFields): Answer {
  board.lockedMinMhz = Number(fields['min_mhz']);
  board.lockedMaxMhz = Number(fields['max_mhz']);
  return { target_mhz: board.lockedMaxMhz };
}

function setLimit(fields: SimFields): Answer {
  const mw = Number(fields['mw']);
  if (mw < info.min_mw || mw > info.max_mw) return 2;
  board.limitMw = mw;
  return {};
}

const VERBS: Record<string, (fields: SimFields) => Answer> = {
  info: () => info,
  read,
  energy: () => ({ energy_mj: counterMj() }),
  lock,
  set_limit: setLimit,
  reset_lock: () => {
    board.lockedMinMhz = 0;
    board.lockedMaxMhz = 0;
    return {};
  },
  processes: () => ({ pids: `${process.pid}:1024,` }),
  integral: (fields) => ({ energy_mj: ((Number(fields['to_ns']) - Number(fields['from_ns'])) / 1e9) * POWER_MW }),
  state: () => ({ locked_min_mhz: board.lockedMinMhz, locked_max_mhz: board.lockedMaxMhz, limit_mw: board.limitMw }),
  fault: (fields) => {
    denied.set(fields['call'] ?? '', Number(fields['code'] ?? 4));
    return {};
  },
  shutdown: () => {
    setImmediate(() => process.exit(0));
    return {};
  },
};

function reply(line: string): string {
  const { verb, fields } = decodeSimLine(line);
  const code = denied.get(verb);
  if (code) return `err code=${code} message=denied by the fault of this test\n`;
  const answer = VERBS[verb]?.(fields) ?? 2;
  return typeof answer === 'number' ? `err code=${answer} message=refused\n` : encodeSimLine('ok', answer);
}

function serve(socket: Socket): void {
  let buffered = '';
  socket.setEncoding('utf8');
  socket.on('error', () => {});
  socket.on('data', (text: string) => {
    const lines = (buffered + text).split('\n');
    buffered = lines.pop() ?? '';
    for (const line of lines) socket.write(reply(line));
  });
}

createServer(serve).listen(process.argv[2], () => process.stdout.write('ready\n'));
