import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

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
export const NOBODY = process.getuid?.() === 0 ? { uid: 65_534 } : {}

/** Whether opening can be tried as somebody who may not write everywhere, and who can read the program: not its mutated copy. */
export const CAN_BE_REFUSED = process.platform === 'linux' && process.env.MUTATION_TESTS === undefined

/** Opens the mirror for writing in a process of its own; what came of it in words. */
export async function openElsewhere(file: string, user: { uid?: number } = {}): Promise<string> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', OPEN, file], {
    ...user,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return (await text(child.stdout)).trim()
}
