import { generateKeyPairSync, sign } from 'node:crypto'
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

/** A key and a certificate that it signed itself, for a TLS server that is not trusted. PEM. */
export function createSelfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const algorithm = der(0x30, der(0x06, Buffer.from([0x2b, 0x65, 0x70])))
  const commonName = der(0x06, Buffer.from([0x55, 0x04, 0x03]))
  const name = der(0x30, der(0x31, der(0x30, commonName, der(0x0c, Buffer.from('localhost')))))
  const validity = der(0x30, time('20200101000000Z'), time('20991231235959Z'))
  const serial = der(0x02, Buffer.from([1]))
  const body = der(
    0x30,
    serial,
    algorithm,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = der(0x03, Buffer.from([0]), sign(null, body, privateKey))
  const certificate = der(0x30, body, algorithm, signature).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.match(/.{1,64}/g)?.join('\n')}\n-----END CERTIFICATE-----\n`,
  }
}

function time(text: string): Buffer {
  return der(0x18, Buffer.from(text))
}

/** A value in the encoding of certificates: what it is, how long it is, and what it holds. */
function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}
