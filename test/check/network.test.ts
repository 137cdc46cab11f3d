import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { checkCertificate, checkNetwork, connectFailure } from '../../src/check/network.ts'

const LOOK = 'look at the way there'

it.each<[code: string | null, message: string, cure: string]>([
  ['late', 'port 443 of api.example did not answer in time', LOOK],
  ['ENOTFOUND', 'api.example is a name that nobody knows', "this machine's name server"],
  ['EAI_AGAIN', 'api.example could not be looked up (EAI_AGAIN)', "this machine's name server"],
  ['ECONNREFUSED', 'nothing listens at port 443 of api.example', 'start the server'],
  ['CERT_HAS_EXPIRED', 'the certificate of api.example is refused (CERT_HAS_EXPIRED)', 'NODE_EXTRA_CA_CERTS'],
  [
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'the certificate of api.example is refused (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
    'NODE_EXTRA_CA_CERTS',
  ],
  [
    'ERR_SSL_WRONG_VERSION_NUMBER',
    'port 443 of api.example speaks no TLS (ERR_SSL_WRONG_VERSION_NUMBER)',
    'have the server speak it',
  ],
  ['CRL_HAS_EXPIRED', 'the certificate of api.example is refused (CRL_HAS_EXPIRED)', 'NODE_EXTRA_CA_CERTS'],
  ['ERR_INVALID_URL', 'port 443 of api.example cannot be used (ERR_INVALID_URL)', LOOK],
  [null, 'port 443 of api.example cannot be used (unknown error)', LOOK],
])('a connection that fails with %s is told of in words', (code, message, cure) => {
  expect(connectFailure(code, 'api.example', 443)).toEqual([message, expect.stringContaining(cure)])
})

it('a port that answers is let go again, and one that is looked at too late is told of', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  const connected = once(server, 'connection') as Promise<[Socket]>

  expect(await checkNetwork(url, 0, new AbortController().signal)).toMatchObject({
    state: 'ok',
    message: expect.stringMatching(/^port \d+ of 127\.0\.0\.1 answers$/),
  })
  const [socket] = await connected
  await once(socket.resume(), 'close')
  expect(await checkNetwork(url, 0, AbortSignal.abort())).toMatchObject({
    exit_code: 1,
    message: expect.stringContaining('did not answer in time'),
    cure: `correct api.baseUrl, or ${LOOK}`,
  })
})

it.each([
  [14, 'ok', 'the certificate of api.example is valid for 14 days'],
  [13, 'warn', 'the certificate of api.example is valid for 13 days'],
])('a certificate that ends in %i days: %s', (days, state, message) => {
  const now = Date.UTC(2026, 10, 20)
  const end = new Date(now + days * 86_400_000).toUTCString()

  expect(checkCertificate({ valid_to: end }, 'api.example', now)).toMatchObject({ state, message })
})

it.each([
  // Where this machine has no IPv6, the words are others.
  ['[::1]:1', / port 1 of ::1( |$)/],
  ['127.0.0.1:1', / port 1 of 127\.0\.0\.1( |$)/],
])('the address %s is connected to without brackets', async (address, place) => {
  const { message } = await checkNetwork(`http://${address}`, 0, new AbortController().signal)

  expect(` ${message}`).toMatch(place)
})
