import { beforeAll, describe, expect, it } from 'vitest'
import { type Asked, items, pageOf, type Reply, serve } from '../helpers/list-server.ts'
import { createWorkspace, leaksOf, organization } from '../helpers/workspace.ts'

// Servers that write the token they were sent into their answers, in ways in which it is not easily told.

const ITEMS = items(4)

function message(text: (token: string) => string) {
  return ({ token }: Asked): Reply => ({ status: 422, body: { message: text(token) } })
}

function next(link: (token: string) => string) {
  return (asked: Asked): Reply => {
    const { body } = pageOf(ITEMS, asked)
    return { body: { ...(body as object), links: { next: link(asked.token) } } }
  }
}

const ECHOES: { name: string; reply: (asked: Asked) => Reply }[] = [
  { name: 'as-it-is', reply: message((token) => `no ${token}, and again: ${token}`) },
  { name: 'encoded-as-in-an-address', reply: message((token) => `no ${encodeURIComponent(token)}`) },
  { name: 'cut-short-with-a-long-message', reply: message((token) => 'x'.repeat(180) + token) },
  { name: 'in-a-title', reply: ({ token }) => ({ body: `<html><title>${token}</title></html>` }) },
  {
    name: 'cut-short-with-a-long-title',
    reply: ({ token }) => ({ body: `<html><title>${'x'.repeat(62)}${token}</title></html>` }),
  },
  { name: 'in-a-text', reply: ({ token }) => ({ body: `no ${token}` }) },
  { name: 'cut-short-with-a-long-text', reply: ({ token }) => ({ body: 'x'.repeat(62) + token }) },
  { name: 'in-the-path-of-a-link', reply: next((token) => `/${encodeURIComponent(token)}?page=2`) },
  {
    name: 'in-the-query-of-a-link',
    reply: next((token) => `http://x.example/?token=${encodeURIComponent(token)}`),
  },
  {
    name: 'cut-short-with-a-long-link',
    reply: next((token) => `http://x.example/${'x'.repeat(160)}${token}`),
  },
  {
    name: 'in-the-page-of-a-link',
    reply: next((token) => `/api/v1/admin/orders?page=${encodeURIComponent(token)}`),
  },
  { name: 'in-the-name-of-a-field', reply: ({ token }) => ({ body: { data: { [token]: 1 } } }) },
  {
    name: 'in-a-header',
    reply: ({ token }) => ({
      status: 302,
      headers: { location: `/login?token=${token}`, 'set-cookie': token, 'x-debug': token },
    }),
  },
]

const organizations = ECHOES.map(({ name }, index) => organization(name, index + 1))
const workspace = createWorkspace()

beforeAll(async () => {
  const server = await serve((asked) => {
    const index = organizations.findIndex(({ id }) => id === asked.organization)
    return ECHOES[index]?.reply(asked) ?? { status: 418 }
  })
  workspace.configure({ baseUrl: server.url, organizations })
  await workspace.run(['sync', '--log-level', 'trace'])
  await workspace.run(['status'])
  await workspace.run(['status', '--json'])
  await workspace.run(['query', 'SELECT * FROM sync_runs'])
})

describe('a token', () => {
  it.each(organizations)('that a server echoes $name shows nowhere', ({ id, token }) => {
    const [error] = workspace.rows(`SELECT error_message FROM sync_runs WHERE organization_id = '${id}'`)

    expect(error?.error_message).toEqual(expect.any(String))
    expect(workspace.leaks.filter((leak) => leak.token === token)).toEqual([])
  })
})

describe('the search for tokens', () => {
  const token = '7|Secret/of+acme-x7Qp93LmZt5VbRw'

  it.each([
    ['whole', `the token ${token} was refused`],
    ['cut short', `the token ${token.slice(0, 20)}...`],
    ['encoded', `?token=${encodeURIComponent(token)}`],
    ['in capitals', token.toUpperCase()],
  ])('finds one that is %s', (_, text) => {
    expect(leaksOf([token], ['nothing', text])).toHaveLength(1)
  })

  it('finds none where none is', () => {
    expect(leaksOf([token], ['7 of them are secret', '[token]'])).toEqual([])
  })
})
