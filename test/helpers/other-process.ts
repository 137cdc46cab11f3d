import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'

const DATABASE = new URL('../../src/store/sqlite/open.ts', import.meta.url).href
const TRANSACTION = new URL('../../src/store/sqlite/runner.ts', import.meta.url).href

const OPEN = `
const { openForWriting } = await import(${JSON.stringify(DATABASE)})
const { createLockWait } = await import(${JSON.stringify(TRANSACTION)})
const { setTimeout: sleep } = await import('node:timers/promises')
const patience = { now: Date.now, sleep, signal: new AbortController().signal }
try {
  const connection = await createLockWait(process.argv[1], patience)(() => openForWriting(process.argv[1]))
  connection.close()
  console.log('opened')
} catch (error) {
  console.log(error.name + ': ' + error.message)
}
`

/** A user who owns nothing: for root no folder is read-only. */
const NOBODY = 65_534

/** Whether opening can be tried as somebody who may not write everywhere, and who can read the program: not its mutated copy. */
export const CAN_BE_REFUSED = process.platform === 'linux' && process.env.MUTATION_TESTS === undefined

/** Opens the mirror for writing in a process of its own, as a user without rights; what came of it in words. */
export function openAsNobody(file: string): string {
  const uid = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', OPEN, file], {
    encoding: 'utf8',
    ...uid,
  })
  return child.stdout.trim() || child.stderr
}

/** Opens the mirror for writing in so many processes at the same time; what came of it in words. */
export function openInProcesses(file: string, count: number): Promise<string[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', OPEN, file])
      return (await outputOf(child)).trim()
    }),
  )
}

async function outputOf(child: ChildProcess): Promise<string> {
  let output = ''
  child.stdout?.on('data', (data) => {
    output += data
  })
  await once(child, 'close')
  return output
}
