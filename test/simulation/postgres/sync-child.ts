import { type MessagePort, workerData } from 'node:worker_threads'
import { Client, types } from 'pg'

// The thread that asks the server for a SyncClient.

const { url, answered, port } = workerData as { url: string; answered: Int32Array; port: MessagePort }
const client = new Client({ connectionString: url, types: { getTypeParser } })
client.on('error', () => {})
const connected = client.connect()

function getTypeParser(type: number) {
  if (type === 20 || type === 23) return Number
  if (type === 1184) return (text: string) => new Date(text).toISOString()
  return types.getTypeParser(type)
}

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
