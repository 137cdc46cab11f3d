import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'

describe.concurrent('publish and http, which have no effect yet,', () => {
  it.each<[string, object, string[]]>([
    ['cause no warning unless they are set', {}, []],
    ['cause a warning: publish', { publish: 'published.db' }, ['publish,']],
    ['cause a warning: http', { http: { port: 1 } }, ['http,']],
  ])('%s', async (_title, settings, expected) => {
    const server = await serve((asked) => pageOf(items(2), asked))
    const organizations = [organization('acme', 1)]
    const collections = { establishments: false, orders: { history: '90d' } }
    const workspace = createWorkspace({ baseUrl: server.url, organizations, collections, ...settings })

    const { code, logs } = await workspace.run(['sync'])

    expect(code).toBe(0)
    const warnings = logs.filter(({ level }) => level === 'warn').map(({ msg }) => msg)
    expect(warnings).toEqual(expected.map((part) => expect.stringContaining(part)))
  })
})
