import type { Reporter, TestModule } from 'vitest/node'

/** Ends the output with one plain line that both people and scripts can read: `2337 passed, 0 failed`. */
export function createCountsReporter(): Reporter {
  return {
    onTestRunEnd(modules, errors) {
      const states = modules.flatMap((module) =>
        [...module.children.allTests()].map((test) => test.result().state),
      )
      const count = (state: string) => states.filter((one) => one === state).length
      // A file that cannot be loaded, or an error between tests, is a failure that no test tells of.
      const broken = modules.filter(isBroken).length + errors.length
      const skipped = count('skipped') > 0 ? `, ${count('skipped')} skipped` : ''
      process.stdout.write(`\n${count('passed')} passed, ${count('failed') + broken} failed${skipped}\n`)
    },
  }
}

function isBroken(module: TestModule): boolean {
  return module.errors().length > 0
}
