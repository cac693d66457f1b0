"""tables.py: CSV files as scikit-learn wants them: numbers imputed and scaled, categories one-hot."""
import csv

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def read(path, target, skip=()):
    """Features (objects), answers (strings), and which columns are numbers."""
    with open(path, newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    header, rows = rows[0], rows[1:]
    answers = np.array([row[header.index(target)] for row in rows])
    columns, numbers = [], []
    for i, name in enumerate(header):
        if name == target or name in skip:
            continue
        cells = [row[i] for row in rows]
        try:
            columns.append(np.array([float(c) if c not in ("", "?") else np.nan for c in cells], object))
            numbers.append(True)
        except ValueError:
            columns.append(np.array([c if c not in ("", "?") else "missing" for c in cells], object))
            numbers.append(False)
    return np.stack(columns, 1), answers, np.array(numbers)


def preparation(numbers):
    return ColumnTransformer([
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), np.flatnonzero(numbers)),
        ("categories", OneHotEncoder(handle_unknown="ignore", sparse_output=False), np.flatnonzero(~numbers))])
