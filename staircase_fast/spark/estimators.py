"""StaircaseRegression and its model, for pipelines of Spark ML."""

from __future__ import annotations

from typing import Any

from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import DenseVector, Vectors, VectorUDT
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from staircase_fast.inputs.options import refuse_column
from staircase_fast.spark.fits import fit
from staircase_fast.spark.predictions import with_values
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import public_class


class _Parameters(HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol):  # type: ignore[misc]
    """The parameters of Spark's IsotonicRegression, with their getters and setters."""

    isotonic = Param(
        Params._dummy(),
        "isotonic",
        "whether predictions increase with the feature (true) or decrease (false)",
        typeConverter=TypeConverters.toBoolean,
    )
    featureIndex = Param(
        Params._dummy(),
        "featureIndex",
        "the index of the feature, if featuresCol is a column of vectors",
        typeConverter=TypeConverters.toInt,
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._setDefault(isotonic=True, featureIndex=0)

    def getIsotonic(self) -> bool:
        """The value of `isotonic`."""
        return self.getOrDefault(self.isotonic)

    def getFeatureIndex(self) -> int:
        """The value of `featureIndex`."""
        return self.getOrDefault(self.featureIndex)

    def setFeaturesCol(self, value: str) -> Any:
        """Set `featuresCol`."""
        return self._set(featuresCol=value)

    def setPredictionCol(self, value: str) -> Any:
        """Set `predictionCol`."""
        return self._set(predictionCol=value)

    def setFeatureIndex(self, value: int) -> Any:
        """Set `featureIndex`."""
        return self._set(featureIndex=value)

    def _scores(self, df: DataFrame) -> Column:
        """The feature: an entry of a vector, or a number."""
        name = self.getFeaturesCol()
        if name not in df.columns:
            refuse_column(name, df.columns)
        if isinstance(df.schema[name].dataType, VectorUDT):
            return vector_to_array(F.col(name)).getItem(self.getFeatureIndex()).alias(name)
        return F.col(name)


@public_class("staircase_fast.spark")
class StaircaseRegression(_Parameters, Estimator, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """Isotonic regression in pipelines of Spark ML, in place of `pyspark.ml.regression.IsotonicRegression`.

    Parameters
    ----------
    featuresCol : str, default "features"
        Column of the feature: numbers or vectors.
    labelCol : str, default "label"
        Column of the targets.
    predictionCol : str, default "prediction"
        Name of the column that the model adds.
    weightCol : str, optional
        Column of weights >= 0.
    isotonic : bool, default True
        Whether predictions increase with the feature (True) or decrease (False).
    featureIndex : int, default 0
        The index of the feature, if `featuresCol` is a column of vectors.

    Notes
    -----
    `fit` minimises the squared error, or the log loss of labels, which has the same minimum.  The model equals that of
    Spark's own class, except for rounding there.

    Examples
    --------
    >>> from staircase_fast.spark import StaircaseRegression
    >>> model = StaircaseRegression(featuresCol="score", labelCol="clicked").fit(df)  # doctest: +SKIP
    >>> model.transform(df)  # doctest: +SKIP
    """

    _input_kwargs: dict[str, Any]

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        featuresCol: str = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        weightCol: str | None = None,
        isotonic: bool = True,
        featureIndex: int = 0,
    ) -> None:
        super().__init__()
        self.setParams(**self._input_kwargs)

    @keyword_only  # type: ignore[untyped-decorator]
    def setParams(
        self,
        *,
        featuresCol: str = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        weightCol: str | None = None,
        isotonic: bool = True,
        featureIndex: int = 0,
    ) -> StaircaseRegression:
        """Set parameters; see the class."""
        return self._set(**self._input_kwargs)

    def setLabelCol(self, value: str) -> StaircaseRegression:
        """Set `labelCol`."""
        return self._set(labelCol=value)

    def setWeightCol(self, value: str) -> StaircaseRegression:
        """Set `weightCol`."""
        return self._set(weightCol=value)

    def setIsotonic(self, value: bool) -> StaircaseRegression:
        """Set `isotonic`."""
        return self._set(isotonic=value)

    def _fit(self, dataset: DataFrame) -> StaircaseRegressionModel:
        weight = self.getWeightCol() if self.isDefined(self.weightCol) else ""
        stairs = fit(dataset, self._scores(dataset), self.getLabelCol(), weight or None, increasing=self.getIsotonic())
        return self._copyValues(StaircaseRegressionModel(stairs))


@public_class("staircase_fast.spark")
class StaircaseRegressionModel(_Parameters, Model, MLReadable, MLWritable):  # type: ignore[misc]
    """The model that `StaircaseRegression` has fitted.

    Parameters
    ----------
    staircase : Staircase

    Attributes
    ----------
    staircase : Staircase

    Notes
    -----
    Predictions between two steps lie on the straight line from the end of one to the start of the next, as those of
    Spark's IsotonicRegressionModel do.
    """

    def __init__(self, staircase: Staircase) -> None:
        super().__init__()
        self.staircase = staircase

    @property
    def boundaries(self) -> DenseVector:
        """The first and the last score of each step, in ascending order."""
        return self._corners()[0]

    @property
    def predictions(self) -> DenseVector:
        """The predictions at the boundaries."""
        return self._corners()[1]

    @property
    def numFeatures(self) -> int:
        """The number of features, 1."""
        return 1

    def predict(self, value: float) -> float:
        """The prediction of one feature value."""
        return float(self.staircase.predict(value, interpolation="linear"))

    def _corners(self) -> tuple[DenseVector, DenseVector]:
        """The corners of the line, without repetition of steps that have one score."""
        corners: dict[float, float] = {}
        for left, right, value in zip(
            *(getattr(self.staircase, name).tolist() for name in ("left", "right", "values")), strict=True
        ):
            corners |= {left: value, right: value}
        return Vectors.dense(list(corners)), Vectors.dense(list(corners.values()))

    def _transform(self, dataset: DataFrame) -> DataFrame:
        return with_values(dataset, self.staircase, self._scores(dataset), self.getPredictionCol(), "linear")

    def write(self) -> MLWriter:
        """A writer of the parameters and the staircase."""
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader:
        """A reader of what `write` has stored."""
        return _ModelReader(cls)


class _ModelWriter(MLWriter):  # type: ignore[misc]
    """Stores the parameters as Spark does, and the staircase as JSON in the metadata."""

    def __init__(self, model: StaircaseRegressionModel) -> None:
        super().__init__()
        self.model = model

    def saveImpl(self, path: str) -> None:
        more = {"staircase": self.model.staircase.to_json()}
        DefaultParamsWriter.saveMetadata(self.model, path, self.sparkSession, extraMetadata=more)


class _ModelReader(MLReader):  # type: ignore[misc]
    def __init__(self, kind: type[StaircaseRegressionModel]) -> None:
        super().__init__()
        self.kind = kind

    def load(self, path: str) -> StaircaseRegressionModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        model = self.kind(Staircase.from_json(metadata["staircase"]))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model
