import { gzipSync } from 'node:zlib'
import type { Fault } from '../helpers/list-server.ts'

// More than anybody can take.

const MEGABYTE = 1_000_000

/** What a gzip of a few hundred kilobytes unpacks to: blanks, so much of them, and a list. */
export function gzipBomb(megabytes: number): Fault {
  return (response) => {
    const blanks = gzipSync(' '.repeat(MEGABYTE))
    response.setHeader('content-encoding', 'gzip')
    response.end(Buffer.concat([...Array.from({ length: megabytes }, () => blanks), gzipSync('[]')]))
  }
}

export const gzipBreaksOff: Fault = (response, text) => {
  const whole = gzipSync(text)
  response.setHeader('content-encoding', 'gzip').end(whole.subarray(0, whole.length / 2))
}

export const endlessBody: Fault = (response) => pour((done) => response.write(' '.repeat(64_000), done))

export const endlessTrailers: Fault = ({ socket }, text) => {
  const length = Buffer.byteLength(text).toString(16)
  socket?.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${length}\r\n${text}\r\n0\r\n`)
  pour((done) => socket?.write(`X-More: ${'x'.repeat(1000)}\r\n`, done))
}

/** Writes again and again, as fast as it is read, until nobody reads any more. */
function pour(write: (done: (error?: Error | null) => void) => void): void {
  const more = (error?: Error | null): void => {
    if (!error) write(more)
  }
  more()
}
