/** The address made uniform, or what is wrong with it and what to do. */
export type Address = { value: string } | { problem: string }

/** `baseUrl`: http or https, a path prefix at most; without the slash at its end, since paths begin with one. */
export function parseBaseUrl(text: string): Address {
  const url = /^https?:\/\/[^\s\\]+$/i.test(text) && URL.canParse(text) ? new URL(text) : null
  if (!url) return { problem: 'must be an http or https address. Write it like https://admin.example.com.' }
  if (url.username !== '' || url.password !== '') {
    return { problem: 'must not hold a user name or password. Tokens go under organizations.' }
  }
  if (/[?#]/.test(text)) {
    return { problem: 'must not hold a query or fragment (? or #). Filters go under collections.' }
  }
  return { value: url.origin + url.pathname.replace(/\/+$/, '') }
}

/** One of `linkHosts`: a host name or IP address alone, in lower case. */
export function parseHost(text: string): Address {
  const host = /^(?:\[[\da-f:.]+\]|[^\s/\\?#@:[\]*%]+)$/i.test(text) ? `http://${text}` : ''
  if (!URL.canParse(host)) {
    return {
      problem: 'must be a host name alone. Write it like api.example.com, without https://, port, path or *.',
    }
  }
  return { value: new URL(host).hostname }
}

/** What is wrong with the path of a collection, or null: it is put behind `baseUrl` as it stands. */
export function findPathProblem(text: string): string | null {
  if (!/^\/(?!\/)[^\s\\\p{Cc}]*$/u.test(text)) {
    return 'must begin with one / and hold no spaces. Write it like /api/v1/admin/orders, without the host.'
  }
  if (/[?#]/.test(text)) return 'must not hold a query or fragment (? or #). Filters go under filters.'
  const climbs = text.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))
  return climbs ? 'must not hold . or .. between slashes. Write the whole path out.' : null
}
