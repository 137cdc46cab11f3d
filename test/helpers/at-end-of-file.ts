/** What is still to be done at the end of this file of tests. */
const tasks: (() => unknown)[] = []

/**
 * Has this done when the tests of the file have ended, the last first. A hook of vitest's that stands in a module which many files
 * import belongs to the first of them alone, since they share the module.
 */
export function atEndOfFile(task: () => unknown): void {
  tasks.push(task)
}

/** Does all of it, whatever fails, and throws what failed. */
export async function endFile(): Promise<void> {
  const errors: unknown[] = []
  for (const task of tasks.splice(0).toReversed()) {
    try {
      await task()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors)
}
