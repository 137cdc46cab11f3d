import { hostname } from 'node:os'
import { expect, it } from 'vitest'
import { createIsAlive, processName } from '../../src/cli/process-name.ts'

// Who lives, and who was killed: test/stories/busy.test.ts.

const isAlive = createIsAlive(hostname(), (pid) => process.kill(pid, 0))

const other = (text: string) => (text.startsWith('0') ? '1' : '0') + text.slice(1)

it('another process with its number is another one, and nothing is known of one on another machine', () => {
  const own = processName(hostname(), process.pid, () => 'abcdef')
  const [machine, begin] = [own.slice(0, -6), own.slice(-6)]

  expect([isAlive(own), isAlive(machine + other(begin))]).toEqual([true, false])
  expect(isAlive(`${own.slice(0, -12)}${other(own.slice(-12))}`)).toBeNull()
  expect(isAlive('somebody')).toBeNull()
})
