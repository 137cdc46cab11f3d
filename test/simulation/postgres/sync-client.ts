import path from 'node:path'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { Row } from '../oracle/context.ts'

/** Asks the server while everything else stands still: what looks on takes no time. */
export interface SyncClient {
  /** Throws where the server refuses it. */
  rows(text: string, ...values: unknown[]): Row[]
  close(): void
}

const LONGEST_MS = 60_000

/** `url`: with the password. */
export function createSyncClient(url: string): SyncClient {
  const answered = new Int32Array(new SharedArrayBuffer(4))
  const { port1: ours, port2: port } = new MessageChannel()
  const worker = new Worker(path.resolve(import.meta.dirname, 'sync-child.ts'), {
    workerData: { url, answered, port },
    transferList: [port],
  })
  worker.unref()
  ours.unref()
  return {
    rows(text, ...values) {
      Atomics.store(answered, 0, 0)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a thread, not to a window
      ours.postMessage({ text, values })
      Atomics.wait(answered, 0, 0, LONGEST_MS)
      const { rows, error } = receiveMessageOnPort(ours)?.message ?? { error: 'no answer' }
      if (rows) return rows
      throw new Error(`${error}: ${text}`)
    },
    close: () => void worker.terminate(),
  }
}
