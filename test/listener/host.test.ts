import { describe, expect, it } from 'vitest'
import { isLoopbackHost } from '../../src/listener/app.ts'
import { isLoopback } from '../../src/loopback.ts'

describe('the Host header of a request to a listener on loopback', () => {
  it.each([
    'localhost',
    'LocalHost:9464',
    'localhost.',
    '127.0.0.1',
    '[::1]:9464',
    '[::ffff:127.0.0.1]:9464',
  ])('may be %s', (host) => {
    expect(isLoopbackHost(host)).toBe(true)
  })

  it.each([
    '',
    'evil.example',
    'mirror.localhost:9464',
    '127.1',
    '127.0.0.1.evil.example',
    'evil.example@127.0.0.1',
    '192.168.0.1:9464',
    '[::2]',
    'localhost evil',
  ])('may not be %j', (host) => {
    expect(isLoopbackHost(host)).toBe(false)
  })
})

describe('an address', () => {
  it.each([
    ['127.0.0.1', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['0.0.0.0', false],
    ['192.168.127.1', false],
    ['localhost', true],
    ['127.evil.example', false],
    ['::ffff:8.8.8.8', false],
  ])('%s is reached from this machine alone: %s', (address, expected) => {
    expect(isLoopback(address)).toBe(expected)
  })
})
