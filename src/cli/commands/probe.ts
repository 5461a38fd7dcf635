// tokbench probe: what the boards of this machine, and the place it runs in, allow.

import type { Command } from 'commander';
import { isBenchError } from '../../core/errors.ts';
import { toJson } from '../../core/json.ts';
import type { GpuAddress } from '../../gpu/device.ts';
import type { ProbeReport } from '../../gpu/probe.ts';
import { positive } from '../numbers.ts';
import { GPU_SAMPLE_S, sampledLines, sampleGpu } from '../probe-sample.ts';
import { probeLines } from '../probe-table.ts';

interface Flags {
  readonly json?: true;
  readonly askPermission?: true;
  readonly socket?: string;
  readonly sampleS?: number;
  readonly uuid?: string;
}

export function configure(command: Command): void {
  command
    .option('--json', 'the whole report as JSON on stdout')
    .option('--ask-permission', "set a board's power limit to the value that it has, to learn whether that is allowed")
    .option('--socket <path>', 'ask the simulated GPU on this Unix socket instead')
    .option(
      '--sample-s <seconds>',
      `also sample one board at 50 Hz for so long (${GPU_SAMPLE_S} is a good measure)`,
      positive,
    )
    .option('--uuid <uuid>', 'the board to sample, where there are several')
    .addHelpText(
      'after',
      '\nExample:\n  tokbench probe --sample-s 60\n\nReads only. --ask-permission calls one setter, with the value in force, so that no setting is changed; it is refused\n(exit 3) while a journal of a killed run is open. Exit 4 when there is no GPU to ask.',
    )
    .action(async (flags: Flags) => {
      if (flags.askPermission) {
        const { refuseStaleJournal } = await import('../../runner/stale-journal.ts');
        refuseStaleJournal();
      }
      const report = await probe(flags).catch((error: unknown) => {
        if (flags.json && isBenchError(error)) {
          const { code, message, advice } = error;
          process.stdout.write(toJson({ boards: [], error: { code, message, advice } }));
        }
        throw error;
      });
      const sampled = flags.sampleS === undefined ? null : await sampleGpu(addressOf(flags), flags.sampleS);
      const lines = [...probeLines(report), ...(sampled === null ? [] : sampledLines(sampled))];
      process.stdout.write(flags.json ? toJson({ ...report, sampled }) : `${lines.join('\n')}\n`);
    });
}

const addressOf = ({ socket, uuid }: Flags): GpuAddress =>
  socket === undefined
    ? { kind: 'nvml', uuid: uuid ?? null, libraryPath: null }
    : { kind: 'simulated', socketPath: socket };

async function probe({ socket, askPermission }: Flags): Promise<ProbeReport> {
  if (socket === undefined) {
    const { probeNvml } = await import('../../gpu/nvml/probe.ts');
    return probeNvml({ libraryPath: null, askPermission: askPermission === true });
  }
  const { openGpu } = await import('../../gpu/open.ts');
  const { probeSimulated } = await import('../../gpu/probe.ts');
  const { placeHere } = await import('../../gpu/nvml/place.ts');
  const device = await openGpu({ kind: 'simulated', socketPath: socket });
  try {
    const { driver } = device.identity;
    const board = await probeSimulated(device, askPermission === true);
    return { place: placeHere(), library: null, driver, nvml: null, cuda: null, missingFunctions: [], boards: [board] };
  } finally {
    await device.close();
  }
}
