// Polls a condition with a deadline that a slow machine can meet.

const DEADLINE_MS = 20_000;

/** Resolves when the condition holds; rejects when it does not within the deadline. */
export async function until(condition: () => boolean | Promise<boolean>, deadlineMs = DEADLINE_MS): Promise<void> {
  const limit = Date.now() + deadlineMs;
  while (!(await condition())) {
    if (Date.now() > limit) throw new Error(`the condition did not hold within ${deadlineMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
