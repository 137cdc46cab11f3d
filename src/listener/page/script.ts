/**
 * Runs in the browser: puts a new reading of the page in place of the old one every five seconds, keeps what was unfolded and
 * what is selected, and says so when no answer comes. Without JavaScript the page loads again by itself.
 */
export const SCRIPT = `
(() => {
  const stale = document.getElementById('stale')
  let answered = new Date()
  let asking = false
  async function refresh() {
    if (asking || document.hidden) return
    asking = true
    try {
      const answer = await fetch(location.pathname, { cache: 'no-store', signal: AbortSignal.timeout(10000) })
      if (!answer.ok) throw new Error((await answer.text()).slice(0, 300))
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html')
      answered = new Date()
      stale.hidden = true
      if (!getSelection().isCollapsed) return
      for (const { id } of document.querySelectorAll('main details[open]'))
        next.getElementById(id)?.setAttribute('open', '')
      document.querySelector('main').replaceWith(next.querySelector('main'))
      document.title = next.title
    } catch (error) {
      const why = error.name === 'Error' ? error.message : 'no answer'
      stale.textContent = 'Old: ' + why + '. What stands below is of ' + answered.toLocaleTimeString() + '.'
      stale.hidden = false
      document.title = 'no answer - admin-mirror'
    } finally {
      asking = false
    }
  }
  setInterval(refresh, 5000)
  document.addEventListener('visibilitychange', refresh)
})()
`
