import {
  isMainThread,
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  Worker,
  workerData,
} from 'node:worker_threads'
import { Client, types } from 'pg'
import type { Row } from '../oracle/context.ts'

const LONGEST_MS = 60_000

/** Asks the server while everything else stands still: what looks on takes no time. `url`: with the password. */
export function createSyncClient(url: string) {
  const answered = new Int32Array(new SharedArrayBuffer(4))
  const { port1: ours, port2: port } = new MessageChannel()
  const worker = new Worker(import.meta.filename, {
    workerData: [url, answered, port] satisfies Parameters<typeof answerAll>,
    transferList: [port],
  })
  worker.unref()
  ours.unref()
  return {
    /** Throws where the server refuses it. */
    rows(text: string, ...values: unknown[]): Row[] {
      Atomics.store(answered, 0, 0)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a thread, not to a window
      ours.postMessage({ text, values })
      // Again where the notice of the answer before comes late: else all answers from then on would be of the question before.
      while (Atomics.load(answered, 0) === 0)
        if (Atomics.wait(answered, 0, 0, LONGEST_MS) === 'timed-out') break
      const { rows, error } = receiveMessageOnPort(ours)?.message ?? { error: 'no answer' }
      if (rows) return rows
      throw new Error(`${error}: ${text}`)
    },
    close: () => void worker.terminate(),
  }
}

/** The thread that asks the server. */
function answerAll(url: string, answered: Int32Array, port: MessagePort): void {
  const client = new Client({ connectionString: url, types: { getTypeParser } })
  client.on('error', () => {})
  const connected = client.connect()
  port.on('message', (question: { text: string; values: unknown[] }) => {
    void connected
      .then(() => client.query(question))
      .then(
        ({ rows }) => ({ rows }),
        (error: unknown) => ({ error: String(error) }),
      )
      .then((answer) => {
        port.postMessage(answer)
        Atomics.store(answered, 0, 1)
        Atomics.notify(answered, 0)
      })
  })
}

function getTypeParser(type: number) {
  if (type === 20 || type === 23) return Number
  if (type === 1184) return (text: string) => new Date(text).toISOString()
  return types.getTypeParser(type)
}

if (!isMainThread) answerAll(...(workerData as Parameters<typeof answerAll>))
