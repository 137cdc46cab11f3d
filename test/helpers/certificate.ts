import { generateKeyPairSync, sign } from 'node:crypto'

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
