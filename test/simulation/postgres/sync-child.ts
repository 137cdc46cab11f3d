import { type MessagePort, workerData } from 'node:worker_threads'
import { Client, types } from 'pg'

// A thread that asks the server while the thread of the simulation stands still: what looks on takes no time.

interface Question {
  number: number
  text: string
  values: unknown[]
}

const { url, signal, port } = workerData as { url: string; signal: SharedArrayBuffer; port: MessagePort }
const flag = new Int32Array(signal)
const client = new Client({ connectionString: url, types: { getTypeParser } })
client.on('error', () => {})
const connected = client.connect()

function getTypeParser(type: number) {
  if (type === 20 || type === 23) return Number
  if (type === 1184) return (text: string) => new Date(text).toISOString()
  return types.getTypeParser(type)
}

async function answer({ text, values }: Question): Promise<unknown> {
  try {
    await connected
    const { rows } = await client.query({ text, values })
    return { rows }
  } catch (error) {
    return { error: `${error instanceof Error ? error.message : String(error)}: ${text}` }
  }
}

port.on('message', (question: Question) => {
  void answer(question).then((result) => {
    port.postMessage({ number: question.number, ...(result as object) })
    Atomics.store(flag, 0, 1)
    Atomics.notify(flag, 0)
  })
})
