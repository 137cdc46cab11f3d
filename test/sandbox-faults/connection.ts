import type { Socket } from 'node:net'
import type { Fault } from '../helpers/list-server.ts'

// What becomes of connections on their way.

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

/** A fault that has the bare connection to itself. */
function onSocket(act: (socket: Socket, text: string) => void): Fault {
  return ({ socket }, text) => {
    if (socket) act(socket, text)
  }
}

export const reset: Fault = onSocket((socket) => socket.resetAndDestroy())

/** Neither an answer nor an end. */
export const hang: Fault = () => {}

/** A byte now and then, and never the last one. */
export const trickle: Fault = (response) => {
  const timer = setInterval(() => response.write(' '), 20)
  response.on('close', () => clearInterval(timer))
}

/** Half of the JSON in an answer that is whole, as a proxy makes it of one that broke off. */
export const halfTheText: Fault = (response, text) => response.end(half(text))

/** Two words on where the body ends. */
export const smuggle: Fault = onSocket((socket, text) =>
  socket.write(`${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${text}`),
)

function half(text: string): string {
  return text.slice(0, text.length / 2)
}
