"""Rules of the games once more, on lists of lists and in the plainest way, to compare the compiled ones with."""


class SlowTicTacToe:
    size, passes = 3, None

    def __init__(self, moves=()):
        self.board, self.turn, self.moves = [[-1] * 3 for _ in range(3)], 0, []
        for move in moves:
            self.play(move)

    def lines(self):
        yield from ([(i, j) for j in range(3)] for i in range(3))
        yield from ([(i, j) for i in range(3)] for j in range(3))
        yield [(i, i) for i in range(3)]
        yield [(i, 2 - i) for i in range(3)]

    def winner(self):
        for line in self.lines():
            owners = {self.board[i][j] for i, j in line}
            if len(owners) == 1 and -1 not in owners:
                return owners.pop()
        return None

    def over(self):
        return self.winner() is not None or all(x >= 0 for row in self.board for x in row)

    def legal(self):
        if self.over():
            return []
        return [3 * i + j for i in range(3) for j in range(3) if self.board[i][j] < 0]

    def play(self, move):
        self.board[move // 3][move % 3] = self.turn
        self.turn = 1 - self.turn
        self.moves.append(move)

    def result(self):
        return {None: 0, 0: 1, 1: -1}[self.winner()]


class SlowConnectFour(SlowTicTacToe):
    def __init__(self, moves=()):
        self.board, self.turn, self.moves = [[-1] * 7 for _ in range(6)], 0, []
        for move in moves:
            self.play(move)

    def lines(self):
        for i in range(6):
            for j in range(7):
                for di, dj in ((0, 1), (1, 0), (1, 1), (1, -1)):
                    line = [(i + k * di, j + k * dj) for k in range(4)]
                    if all(0 <= a < 6 and 0 <= b < 7 for a, b in line):
                        yield line

    def legal(self):
        return [] if self.over() else [j for j in range(7) if self.board[0][j] < 0]

    def play(self, move):
        i = max(i for i in range(6) if self.board[i][move] < 0)
        self.board[i][move] = self.turn
        self.turn = 1 - self.turn
        self.moves.append(move)


class SlowOthello:
    def __init__(self, moves=()):
        self.board = [[-1] * 6 for _ in range(6)]
        for (i, j), who in {(2, 2): 1, (3, 3): 1, (2, 3): 0, (3, 2): 0}.items():
            self.board[i][j] = who
        self.turn, self.moves = 0, []
        for move in moves:
            self.play(move)

    def turned(self, i, j, who):
        if self.board[i][j] >= 0:
            return []
        found = []
        for di in (-1, 0, 1):
            for dj in (-1, 0, 1):
                if di == dj == 0:
                    continue
                run, a, b = [], i + di, j + dj
                while 0 <= a < 6 and 0 <= b < 6 and self.board[a][b] == 1 - who:
                    run.append((a, b))
                    a, b = a + di, b + dj
                if 0 <= a < 6 and 0 <= b < 6 and self.board[a][b] == who:
                    found += run
        return found

    def places(self, who):
        return [6 * i + j for i in range(6) for j in range(6) if self.turned(i, j, who)]

    def over(self):
        return not self.places(0) and not self.places(1)

    def legal(self):
        return [] if self.over() else self.places(self.turn) or [36]

    def play(self, move):
        if move != 36:
            for a, b in [*self.turned(move // 6, move % 6, self.turn), (move // 6, move % 6)]:
                self.board[a][b] = self.turn
        self.turn = 1 - self.turn
        self.moves.append(move)

    def result(self):
        lead = sum(1 if x == 0 else -1 for row in self.board for x in row if x >= 0)
        return (lead > 0) - (lead < 0)


class SlowGo:
    def __init__(self, size, komi, moves=()):
        self.size, self.komi, self.turn, self.moves = size, komi, 0, []
        self.board = [[-1] * size for _ in range(size)]
        self.past = {self.frozen(self.board)}
        for move in moves:
            self.play(move)

    @staticmethod
    def frozen(board):
        return tuple(map(tuple, board))

    def near(self, i, j):
        steps = ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))
        return [(a, b) for a, b in steps if 0 <= a < self.size and 0 <= b < self.size]

    def region(self, board, i, j):
        """Cells that hang together with this one, and what they touch."""
        who, cells, edge, waiting = board[i][j], {(i, j)}, set(), [(i, j)]
        while waiting:
            for cell in self.near(*waiting.pop()):
                if board[cell[0]][cell[1]] == who and cell not in cells:
                    cells.add(cell)
                    waiting.append(cell)
                elif board[cell[0]][cell[1]] != who:
                    edge.add(board[cell[0]][cell[1]])
        return cells, edge

    def after(self, move):
        """The board after a stone, or None where it is not legal."""
        i, j = divmod(move, self.size)
        if self.board[i][j] >= 0:
            return None
        board = [row[:] for row in self.board]
        board[i][j] = self.turn
        for a, b in self.near(i, j):
            if board[a][b] == 1 - self.turn:
                cells, edge = self.region(board, a, b)
                if -1 not in edge:
                    for c, d in cells:
                        board[c][d] = -1
        if -1 not in self.region(board, i, j)[1] or self.frozen(board) in self.past:
            return None
        return board

    def over(self):
        return self.moves[-2:] == [self.size**2] * 2 or len(self.moves) == 4 * self.size**2

    def legal(self):
        if self.over():
            return []
        return [m for m in range(self.size**2) if self.after(m) is not None] + [self.size**2]

    def play(self, move):
        if move != self.size**2:
            self.board = self.after(move)
            self.past.add(self.frozen(self.board))
        self.turn = 1 - self.turn
        self.moves.append(move)

    def result(self):
        points = [0, 0]
        for i in range(self.size):
            for j in range(self.size):
                who = self.board[i][j]
                if who >= 0:
                    points[who] += 1
                else:
                    edge = self.region(self.board, i, j)[1]
                    if len(edge) == 1:
                        points[edge.pop()] += 1
        lead = points[0] - points[1] - self.komi
        return (lead > 0) - (lead < 0)


def slow_minimax(game, copy):
    """Value for player 0, by visiting every line of play."""
    if game.over():
        return game.result()
    values = [slow_minimax(copy([*game.moves, move]), copy) for move in game.legal()]
    return max(values) if game.turn == 0 else min(values)
