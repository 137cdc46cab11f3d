import path from 'node:path'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { Row } from '../oracle/context.ts'

/** Asks the server while everything else stands still. */
export interface SyncClient {
  /** Throws where the server refuses it. */
  rows(text: string, ...values: unknown[]): Row[]
  close(): void
}

interface Answer {
  rows?: Row[]
  error?: string
}

/** `url`: with the password. */
export function createSyncClient(url: string): SyncClient {
  const signal = new SharedArrayBuffer(4)
  const flag = new Int32Array(signal)
  const { port1: ours, port2: port } = new MessageChannel()
  const worker = new Worker(path.resolve(import.meta.dirname, 'sync-child.ts'), {
    workerData: { url, signal, port },
    transferList: [port],
  })
  worker.unref()
  ours.unref()
  return {
    rows(text, ...values) {
      Atomics.store(flag, 0, 0)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a thread, not to a window
      ours.postMessage({ text, values })
      Atomics.wait(flag, 0, 0, 60_000)
      const message = receiveMessageOnPort(ours)?.message as Answer | undefined
      if (message?.rows) return message.rows
      throw new Error(message?.error ?? 'the server does not answer')
    },
    close: () => void worker.terminate(),
  }
}
