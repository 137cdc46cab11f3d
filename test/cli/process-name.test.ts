import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { expect, it } from 'vitest'
import { createIsAlive, processName } from '../../src/cli/process-name.ts'

const isAlive = createIsAlive(hostname(), (pid) => process.kill(pid, 0))
const nameOf = (pid: number) => processName(hostname(), pid, () => 'abcdef')

it('a process is known to live by its name, and to be dead once it has ended', async () => {
  const child = spawn('sleep', ['1000'])
  await once(child, 'spawn')
  const name = nameOf(child.pid ?? 0)
  const before = isAlive(name)
  child.kill('SIGKILL')
  await once(child, 'exit')

  expect([before, isAlive(name), isAlive(nameOf(process.pid))]).toEqual([true, false, true])
})

const other = (text: string) => (text.startsWith('0') ? '1' : '0') + text.slice(1)

it('another process with its number is another one, and nothing is known of one on another machine', () => {
  const own = nameOf(process.pid)
  const [machine, begin] = [own.slice(0, -6), own.slice(-6)]

  expect(isAlive(machine + other(begin))).toBe(false)
  expect(isAlive(`${own.slice(0, -12)}${other(own.slice(-12))}`)).toBeNull()
  expect(isAlive('somebody')).toBeNull()
})
