// The words of the house. The only barrel: core is imported by everyone and imports nothing of ours.

export * from './board-evidence.ts';
export * from './calibration.ts';
export * from './cell.ts';
export * from './counter-facts.ts';
export * from './dialect.ts';
export * from './errors.ts';
export * from './experiment.ts';
export * from './ids.ts';
export * from './json.ts';
export * from './lengths.ts';
export * from './load.ts';
export * from './other-scopes.ts';
export * from './outcome.ts';
export * from './requests.ts';
export * from './salt.ts';
export * from './schedule.ts';
export * from './server-url.ts';
export * from './sim-protocol.ts';
export * from './slo.ts';
export * from './surroundings.ts';
export * from './telemetry.ts';
export * from './time.ts';
