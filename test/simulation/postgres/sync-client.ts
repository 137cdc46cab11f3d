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
  number: number
  rows?: Row[]
  error?: string
}

const LONGEST_MS = 60_000

/** The flag may be lowered in the moment in which the answer comes. */
const LOOK_EVERY_MS = 200

/** `url`: with the password. */
export function createSyncClient(url: string): SyncClient {
  const signal = new SharedArrayBuffer(4)
  const flag = new Int32Array(signal)
  const { port1: ours, port2: port } = new MessageChannel()
  const worker = new Worker(path.resolve(import.meta.dirname, 'sync-child.ts'), {
    workerData: { url, signal, port },
    transferList: [port],
  })
  let asked = 0

  /** The answer to this question; one that came too late for an earlier question is dropped. */
  function answerTo(number: number): Answer | undefined {
    for (;;) {
      const message = receiveMessageOnPort(ours)?.message as Answer | undefined
      if (!message || message.number === number) return message
    }
  }

  worker.unref()
  ours.unref()
  return {
    rows(text, ...values) {
      const number = ++asked
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a thread, not to a window
      ours.postMessage({ number, text, values })
      const until = Date.now() + LONGEST_MS
      while (Date.now() < until) {
        Atomics.wait(flag, 0, 0, LOOK_EVERY_MS)
        Atomics.store(flag, 0, 0)
        const message = answerTo(number)
        if (message?.rows) return message.rows
        if (message) throw new Error(message.error ?? 'no answer')
      }
      throw new Error(`the server does not answer: ${text}`)
    },
    close: () => void worker.terminate(),
  }
}
