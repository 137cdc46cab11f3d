import path from 'node:path'
import type { Job } from '../../sync/types.ts'
import { counted } from '../../text.ts'
import { type Judged, noteMissing } from '../core/missing.ts'
import type { Keys } from '../core/sql.ts'
import type { TaskSize } from '../core/store.ts'
import { knownKeys } from '../core/tables.ts'
import { type Closing, closeWalk } from '../core/walks.ts'
import { runChild } from './child-process.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import { type AlterPlan, alterAsPlanned } from './tables/alter.ts'
import type { Patience } from './transaction.ts'

/**
 * Long work on the file, by name. Each task runs in one transaction: a kill leaves the file as it was.
 * `onRows` gets the number of rows that each statement handled.
 */
export const TASKS = {
  // Rebuilds tables, so it must run `withoutForeignKeys`.
  alterTables: (connection: Connection, plan: AlterPlan, onRows: (rows: number) => void = () => {}) =>
    runRule(connection, alterAsPlanned(plan, onRows)),
  noteMissing: (connection: Connection, judged: Judged) =>
    runRule(connection, noteMissing(SQLITE, keysOf(connection, judged), judged)),
  closeWalk: (connection: Connection, closing: Closing) =>
    runRule(connection, closeWalk(SQLITE, keysOf(connection, closing), closing)),
}

function keysOf(connection: Connection, { job }: { job: Job }): Keys | null {
  return runRule(connection, knownKeys(SQLITE, job.collection.name))
}

type Tasks = typeof TASKS
export type TaskName = keyof Tasks
export type TaskArgument<N extends TaskName> = Parameters<Tasks[N]>[1]
export type TaskResult<N extends TaskName> = ReturnType<Tasks[N]>

/** Runs a task. Throws MirrorError, and InterruptedError after the signal to stop. */
export type Maintain = <N extends TaskName>(
  name: N,
  argument: TaskArgument<N>,
  size: TaskSize,
) => Promise<TaskResult<N>>

/** The message to the child process. */
export interface ChildTask<N extends TaskName = TaskName> {
  file: string
  name: N
  argument: TaskArgument<N>
  what: string
}

/** How often progress is reported. Milliseconds. */
const REPORT_EVERY_MS = 5000

const PROGRAM = new URL(`./maintenance-child${path.extname(import.meta.url)}`, import.meta.url)

/**
 * Runs tasks in a child process, since SQLite would block the event loop. The child dies with this process,
 * and is killed on the signal to stop.
 */
export function createMaintenance(file: string, { now, signal, report }: Omit<Patience, 'sleep'>): Maintain {
  return async <N extends TaskName>(name: N, argument: TaskArgument<N>, { what, rows }: TaskSize) => {
    report?.(`${what}; ${counted(rows, 'row')} to go through`)
    let done = 0
    let reportedAt = now()
    const onRows = (more: number) => {
      done += more
      if (now() - reportedAt < REPORT_EVERY_MS) return
      reportedAt = now()
      report?.(`${what}: ${Math.min(99, Math.floor((done * 100) / rows))} %`)
    }
    const task: ChildTask = { file, name, argument, what }
    return (await runChild(PROGRAM, task, signal, onRows)) as TaskResult<N>
  }
}
