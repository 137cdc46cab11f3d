/**
 * Lists in the order in which workers should take them: the first one of each budget, the second one of each, and so on. In the
 * order of the configuration, where the lists of a token often stand together, all workers would wait for the same few tokens.
 */
export function inTurns<L extends { budget: string }>(lists: readonly L[]): L[] {
  const turns: L[][] = []
  const counts = new Map<string, number>()
  for (const list of lists) {
    const turn = counts.get(list.budget) ?? 0
    counts.set(list.budget, turn + 1)
    const others = turns[turn]
    if (others) others.push(list)
    else turns[turn] = [list]
  }
  return turns.flat()
}
