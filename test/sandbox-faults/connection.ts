import type { Socket } from 'node:net'
import type { Fault } from '../cli/list-server.ts'

// What becomes of connections on their way.

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

/** A fault that has the bare connection to itself. */
function onSocket(act: (socket: Socket, text: string) => void): Fault {
  return ({ socket }, text) => {
    if (socket) act(socket, text)
  }
}

export const reset: Fault = onSocket((socket) => socket.resetAndDestroy())

export const close: Fault = onSocket((socket) => socket.end())

export const closeInHeaders: Fault = onSocket((socket) => socket.end(`${HEAD}X-Some`))

export const noHttp: Fault = onSocket((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))

/** Neither an answer nor an end. */
export const hang: Fault = () => {}

export const hangInHeaders: Fault = onSocket((socket) => socket.write(`${HEAD}X-Some`))

export const hangAfterHeaders: Fault = (response) => response.flushHeaders()

/** A byte now and then, and never the last one. */
export const trickle: Fault = (response) => {
  const timer = setInterval(() => response.write(' '), 20)
  response.on('close', () => clearInterval(timer))
}

/** An interim answer now and then, and never the real one. */
export const trickleInterimAnswers: Fault = onSocket((socket) => {
  const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'), 20)
  socket.on('close', () => clearInterval(timer))
})

export const resetInBody: Fault = (response, text) => {
  response.write(half(text), () => setImmediate(() => response.socket?.resetAndDestroy()))
}

/** The chunk that ends the body does not come. */
export const breakOffChunked: Fault = (response, text) => {
  response.write(half(text), () => setImmediate(() => response.socket?.end()))
}

/** Fewer bytes come than the length says. */
export const breakOffLength: Fault = (response, text) => {
  response.setHeader('content-length', Buffer.byteLength(text))
  response.write(half(text), () => setImmediate(() => response.socket?.end()))
}

/** Half of the JSON in an answer that is whole, as a proxy makes it of one that broke off. */
export const halfTheText: Fault = (response, text) => response.end(half(text))

/** Cut within a character. */
export const halfACharacter: Fault = (response) =>
  response.end(Buffer.from('[{"id":1,"name":"é').subarray(0, -1))

export const switchProtocols: Fault = onSocket((socket) =>
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n'),
)

/** Two words on where the body ends. */
export const smuggle: Fault = onSocket((socket, text) =>
  socket.write(`${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${text}`),
)

function half(text: string): string {
  return text.slice(0, text.length / 2)
}

/** The answer, and a copy of it on the same connection. */
export const repeat: Fault = onSocket((socket, text) => {
  const answer = `${HEAD}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  socket.write(answer)
  // The copy comes at a time of its own: sometimes the next request is on its way by then.
  setTimeout(() => socket.write(answer), 2)
})
