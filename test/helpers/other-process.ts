import { execFile } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const urlOf = (file: string) =>
  JSON.stringify(new URL(`../../src/store/sqlite/${file}`, import.meta.url).href)

const SCRIPT = `
const { openForReading, openForWriting } = await import(${urlOf('open.ts')})
const { createLockWait } = await import(${urlOf('runner.ts')})
const { readFileFacts } = await import(${urlOf('read.ts')})
const { setTimeout: sleep } = await import('node:timers/promises')
const patience = { elapsed: performance.now.bind(performance), sleep, signal: new AbortController().signal }
const [, file, task] = process.argv
try {
  if (task === 'read') readFileFacts(openForReading(file), () => null, 0)
  else (await createLockWait(file, patience)(() => openForWriting(file))).close()
  console.log('done')
} catch (error) {
  console.log(error.name + ': ' + error.message)
}
`

/** A user who owns nothing: for root no folder is read-only. */
export const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

/** The folder on the way to this one that only its owner may enter; null: there is none. */
export function closedFolder(folder: string): string | null {
  if ((fs.statSync(folder).mode & 0o001) === 0) return folder
  const parent = path.dirname(folder)
  return parent === folder ? null : closedFolder(parent)
}

/** Whether opening can be tried as somebody who may not write everywhere, and who can read the program: not its mutated copy. */
export const CAN_BE_REFUSED =
  process.platform === 'linux' &&
  process.env.MUTATION_TESTS === undefined &&
  (process.getuid?.() !== 0 || closedFolder(import.meta.dirname) === null)

/** Opens the mirror for writing, or reads it, in a process of its own; what came of it in words: `done`, or the error. */
export async function openElsewhere(
  file: string,
  task: 'write' | 'read' = 'write',
  user: { uid?: number; gid?: number } = {},
): Promise<string> {
  const args = ['--input-type=module', '-e', SCRIPT, file, task]
  return (await promisify(execFile)(process.execPath, args, user)).stdout.trim()
}
