// Small experiment files for tests: the mock engine on the simulated GPU, seconds long.

export interface Wanted {
  readonly name?: string;
  readonly repeats?: number;
  readonly seed?: number;
  readonly arms?: readonly string[];
  /** YAML lines of each arm, after its id. */
  readonly armLines?: Readonly<Record<string, readonly string[]>>;
  readonly loads?: readonly string[];
  readonly rate?: number;
  readonly windowS?: number;
  readonly warmupS?: number;
  readonly gpu?: 'none' | 'simulated';
  readonly engineLines?: readonly string[];
  readonly port?: number;
  readonly readinessTimeoutS?: number;
}

/** The text of a config file; everything that is not wanted otherwise is as short as it can be. */
export function experimentText(wanted: Wanted = {}): string {
  const arms = wanted.arms ?? ['base'];
  const loads = wanted.loads ?? ['l4'];
  return `schema: tokbench.experiment/1
name: ${wanted.name ?? 'test'}
seed: ${wanted.seed ?? 7}
profile: shortened
repeats: ${wanted.repeats ?? 1}
model: { path: mock, servedName: bench, tokenIds: [4, 32000], maxModelLen: 4096 }
engine:
  kind: mock
  startupS: 0.2
  maxSeqs: 16
  port: ${wanted.port ?? 0}
  readinessTimeoutS: ${wanted.readinessTimeoutS ?? 30}
${(wanted.engineLines ?? []).map((line) => `  ${line}`).join('\n')}
gpu: { kind: ${wanted.gpu ?? 'simulated'} }
arms:
${arms.map((id) => [`  - id: ${id}`, ...(wanted.armLines?.[id] ?? []).map((line) => `    ${line}`)].join('\n')).join('\n')}
loads:
${loads
  .map(
    (id) =>
      `  - { id: ${id}, rate: ${wanted.rate ?? 4}, promptTokens: 512, outputTokens: 16, warmupS: ${wanted.warmupS ?? 1}, windowS: ${wanted.windowS ?? 4}, tailS: 1, drainS: 10 }`,
  )
  .join('\n')}
phases:
  preflightS: 1
  bareIdleS: 0
  soak: { minS: 2, maxS: 2, compareS: 1, promptTokens: 64, outputTokens: 16 }
  idleSettleS: 0.5
  idleMeasureS: 1.5
  gapS: 0
`;
}
