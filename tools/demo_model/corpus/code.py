# A few lines of Python on request.
# SPDX-License-Identifier: Apache-2.0
from .split import Phrasings, Turn, phrases

ASK = phrases(["Write a Python function that {d}", "Write a function that {d}", "Can you write a Python function that {d}",
               "I need a Python function that {d}", "Give me Python code that {d}", "Show me a function that {d}",
               "Please write a Python function that {d}", "write a python function that {d}"], [".", "", ", please."])
NAMED = phrases(["Write a Python function called {f} that {d}", "Write a function named {f} that {d}", "I need a function {f} that {d}",
                 "Define a Python function {f} that {d}"], [".", ""])
# name, arguments, what it does, body
FUNCTIONS = [
    ("add", "a, b", "adds two numbers", "return a + b"),
    ("subtract", "a, b", "subtracts one number from another", "return a - b"),
    ("multiply", "a, b", "multiplies two numbers", "return a * b"),
    ("divide", "a, b", "divides two numbers", "return a / b"),
    ("square", "x", "squares a number", "return x * x"),
    ("is_even", "n", "tells whether a number is even", "return n % 2 == 0"),
    ("is_odd", "n", "tells whether a number is odd", "return n % 2 == 1"),
    ("largest", "numbers", "finds the largest number of a list", "return max(numbers)"),
    ("smallest", "numbers", "finds the smallest number of a list", "return min(numbers)"),
    ("total", "numbers", "sums a list of numbers", "return sum(numbers)"),
    ("average", "numbers", "computes the average of a list", "return sum(numbers) / len(numbers)"),
    ("reverse", "text", "reverses a string", "return text[::-1]"),
    ("count_words", "text", "counts the words of a text", "return len(text.split())"),
    ("count_vowels", "text", "counts the vowels of a text", "return sum(c in \"aeiou\" for c in text.lower())"),
    ("is_palindrome", "text", "checks whether a text is a palindrome", "return text == text[::-1]"),
    ("sort_numbers", "numbers", "sorts a list of numbers", "return sorted(numbers)"),
    ("sort_down", "numbers", "sorts a list in descending order", "return sorted(numbers, reverse=True)"),
    ("first", "items", "returns the first item of a list", "return items[0]"),
    ("last", "items", "returns the last item of a list", "return items[-1]"),
    ("unique", "items", "removes duplicates from a list", "return list(dict.fromkeys(items))"),
    ("greet", "name", "greets a person by name", "return f\"Hello, {name}!\""),
    ("to_fahrenheit", "celsius", "converts Celsius to Fahrenheit", "return celsius * 9 / 5 + 32"),
    ("to_celsius", "fahrenheit", "converts Fahrenheit to Celsius", "return (fahrenheit - 32) * 5 / 9"),
    ("absolute", "x", "returns the absolute value of a number", "return -x if x < 0 else x"),
    ("clamp", "x, low, high", "keeps a number between two bounds", "return max(low, min(x, high))"),
    ("repeat", "text, n", "repeats a text n times", "return text * n"),
    ("factorial", "n", "computes the factorial of a number", "result = 1\nfor i in range(2, n + 1):\n    result *= i\nreturn result"),
    ("fibonacci", "n", "computes the n-th Fibonacci number", "a, b = 0, 1\nfor _ in range(n):\n    a, b = b, a + b\nreturn a"),
    ("count_down", "n", "counts down from n to 1", "for i in range(n, 0, -1):\n    print(i)"),
    ("evens", "numbers", "keeps only the even numbers of a list", "return [n for n in numbers if n % 2 == 0]"),
    ("squares", "n", "lists the squares up to n", "return [i * i for i in range(1, n + 1)]"),
    ("is_prime", "n", "checks whether a number is prime", "return n > 1 and all(n % i for i in range(2, int(n ** 0.5) + 1))"),
]
PHRASINGS = Phrasings("code", ASK)
NAMED_PHRASINGS = Phrasings("code_named", NAMED)
OTHER_NAMES = ["compute", "solve", "helper", "calc", "run", "do_it", "answer", "work", "process", "my_function", "f", "g", "func", "task"]
BY_NUMBER = [("add_{n}", "adds {n} to a number", "return x + {n}"), ("times_{n}", "multiplies a number by {n}", "return x * {n}"),
             ("minus_{n}", "subtracts {n} from a number", "return x - {n}"),
             ("more_than_{n}", "checks whether a number is greater than {n}", "return x > {n}")]


def _block(name, arguments, body):
    indented = "\n".join("    " + line for line in body.split("\n"))
    return f"```python\ndef {name}({arguments}):\n{indented}\n```"


def code(rng, held_out):
    if rng.random() < 0.25:
        n = rng.randint(1, 20)
        name, does, body = (t.replace("{n}", str(n)) for t in rng.choice(BY_NUMBER))
        arguments = "x"
    else:
        name, arguments, does, body = rng.choice(FUNCTIONS)
    if rng.random() < 0.3:
        template, name = NAMED_PHRASINGS.pick(rng, held_out), rng.choice(OTHER_NAMES)
    else:
        template = PHRASINGS.pick(rng, held_out)
    return Turn("code", template.format(d=does, f=name), _block(name, arguments, body), template)
