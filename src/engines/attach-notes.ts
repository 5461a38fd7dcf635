// What the canary found that will show in the figures: said before the load, with what can be done about it.

import type { Capabilities, Discovery } from './capabilities.ts';
import type { EngineNote } from './engine.ts';

export interface AttachFindings {
  readonly found: Discovery;
  readonly sentPromptTokens: number;
  readonly metrics: 'vllm' | 'other' | 'none';
  readonly modelListed: boolean | null;
  readonly verified: boolean;
  readonly exactLengthWanted: boolean;
}

/** What the server cannot tell, in words; also kept in launch.json. */
export function cannotTell(capabilities: Capabilities, metrics: AttachFindings['metrics']): string[] {
  return [
    capabilities.promptTokensReported ? null : 'prompt tokens',
    capabilities.tokenIds ? null : 'token ids',
    capabilities.usage ? null : 'usage',
    metrics === 'vllm' ? null : 'metrics: prefix hits, preemptions, restarts',
  ].filter((item) => item !== null);
}

export function attachNotes(findings: AttachFindings): EngineNote[] {
  const { found, metrics } = findings;
  const { capabilities } = found;
  const unknown = cannotTell(capabilities, metrics);
  const notes: (EngineNote | null)[] = [
    findings.verified
      ? null
      : {
          code: 'certificate_not_verified',
          message: 'any certificate is accepted',
          advice: 'The capture and the report say so. --ca-file names the authority instead.',
        },
    unknown.length === 0
      ? null
      : {
          code: 'cannot_tell',
          message: `the server does not tell: ${unknown.join('; ')}`,
          advice: 'What follows from that is explained in docs/LOAD.md; nothing is guessed.',
        },
    capabilities.droppedFields.length === 0
      ? null
      : {
          code: 'fields_dropped',
          message: `the server refuses ${capabilities.droppedFields.join(', ')}: left out of every request`,
          advice: 'Nothing to do, unless the server can be told to take them.',
        },
    capabilities.promptTokensExact !== false
      ? null
      : {
          code: 'prompt_not_exact',
          message: `the canary sent ${findings.sentPromptTokens} prompt tokens, the server counted ${found.promptTokens}`,
          advice: 'V1 will exclude the cell. Look for a setting that adds a BOS token or a template.',
        },
    capabilities.exactLength !== false || !findings.exactLengthWanted
      ? null
      : {
          code: 'length_not_exact',
          message: `the canary's answer ended by itself (${capabilities.finishReason ?? 'no reason given'}) although EOS was to be ignored`,
          advice: 'Answers that end early are misses. --no-ignore-eos lets them end by themselves.',
        },
    findings.modelListed !== false
      ? null
      : {
          code: 'model_not_listed',
          message: 'the server answers, but does not list a model of that name',
          advice: 'Make sure that it is the model you mean: some servers take any name.',
        },
  ];
  return notes.filter((note) => note !== null);
}
