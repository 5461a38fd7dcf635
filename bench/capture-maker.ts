// Entry of the process that makes the large capture up, so that its memory is not counted as that of the reader.

import { answerParent } from './child.ts';
import { type CaptureSize, writeSyntheticCapture } from './synthetic-capture.ts';

export interface MakeQuestion {
  readonly dir: string;
  readonly size: CaptureSize;
}

answerParent<MakeQuestion, object>(async ({ dir, size }) => {
  await writeSyntheticCapture(dir, size);
  return {};
});
