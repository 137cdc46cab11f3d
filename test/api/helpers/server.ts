import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A server on loopback until the test is over, and its address. */
export function serve(listener: RequestListener): Promise<URL> {
  return start(createHttpServer(listener), 'http')
}

export function serveTls(
  credentials: { key: string; cert: string },
  listener: RequestListener,
): Promise<URL> {
  return start(createHttpsServer(credentials, listener), 'https')
}

/** A server that answers each request with raw bytes, for what no HTTP server would send. */
export function serveRaw(answer: (socket: Socket) => void): Promise<URL> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  return start(server, 'http')
}

async function start(server: Server, scheme: 'http' | 'https'): Promise<URL> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  })
  const { port } = server.address() as AddressInfo
  return new URL(`${scheme}://127.0.0.1:${port}/list`)
}
